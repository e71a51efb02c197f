#include "cli/uci_engine.h"

#include <fmt/format.h>

#include <cctype>

#include "cli/version.h"
#include "core/error.h"
#include "core/text.h"
#include "core/whole_number.h"
#include "games/chess.h"

namespace quern::cli {
namespace {

constexpr uint64_t kOverhead = 30;  // milliseconds; of the option Move Overhead
constexpr uint64_t kMaxOverhead = 10'000, kMaxNodes = 1'000'000'000;
constexpr size_t kShown = 60;  // characters of a line that is not understood

uint64_t read_number(std::string_view name, std::string_view text, uint64_t least, uint64_t most) {
  const auto value = parse_whole_number(text);
  if (value && *value >= least && *value <= most) return *value;
  throw Error("setoption {}: expected a whole number from {} to {}, found {}", name, least, most,
              in_quotes(text, kShown));
}

bool read_check(std::string_view name, std::string_view text) {
  if (text == "true" || text == "false") return text == "true";
  throw Error("setoption {}: expected true or false, found {}", name, in_quotes(text, kShown));
}

// The words up to `end`, which is removed, with a space between.
std::string words_until(UciWords& words, std::string_view end) {
  std::string text;
  while (const auto word = words.next()) {
    if (*word == end) break;
    if (!text.empty()) text += ' ';
    text += *word;
  }
  return text;
}

}  // namespace

UciEngine::UciEngine(const learn::SavedNetwork& network, uint64_t nodes)
    : rules_(*network.game),
      default_nodes_(nodes),
      name_(fmt::format("Quern {} {}@{}", version(), network.folder.filename().string(), network.step)),
      nodes_(nodes),
      overhead_(kOverhead),
      game_(rules_),
      search_(network, output_) {}

bool UciEngine::handle(std::string_view line) {
  UciWords words(line);
  const std::string_view command = words.next().value_or("");
  try {
    if (command == "quit") return false;
    if (command == "uci") {
      identify();
    } else if (command == "isready") {
      output_.say("readyok");
    } else if (command == "ucinewgame") {
      new_game();
    } else if (command == "position") {
      game_.read(words.rest());
    } else if (command == "go") {
      go(words.rest());
    } else if (command == "stop") {
      search_.stop();
    } else if (command == "setoption") {
      set_option(words);
    } else if (command == "d") {
      show_board();
    } else if (!command.empty() && command != "debug" && command != "ponderhit" && command != "register") {
      throw Error("unknown command {}; known are uci, isready, ucinewgame, position, go, stop, setoption, d and quit",
                  in_quotes(command, kShown));
    }
  } catch (const Error& error) {
    output_.say("info string {}", printable(error.what()));
  }
  return true;
}

void UciEngine::identify() {
  output_.say("id name {}", printable(name_));
  output_.say("id author the Quern authors");
  output_.say("option name Nodes type spin default {} min 1 max {}", default_nodes_, kMaxNodes);
  output_.say("option name Move Overhead type spin default {} min 0 max {}", kOverhead, kMaxOverhead);
  output_.say("option name UCI_ShowWDL type check default false");
  output_.say("uciok");
}

void UciEngine::new_game() {
  search_.stop();
  search_.forget();
  game_.read("startpos");
}

// Names of options do not depend on case.
void UciEngine::set_option(UciWords words) {
  if (words.next() != "name") throw Error("setoption: expected name, found {}", in_quotes(words.rest(), kShown));
  const std::string name = words_until(words, "value"), value = words_until(words, "");
  std::string lower = name;
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (lower == "nodes") {
    nodes_ = read_number("Nodes", value, 1, kMaxNodes);
  } else if (lower == "move overhead") {
    overhead_ = read_number("Move Overhead", value, 0, kMaxOverhead);
  } else if (lower == "uci_showwdl") {
    show_wdl_ = read_check("UCI_ShowWDL", value);
  } else {
    throw Error("setoption: expected Nodes, Move Overhead or UCI_ShowWDL, found {}", in_quotes(name, kShown));
  }
}

void UciEngine::go(std::string_view arguments) {
  UciGo go = read_go(arguments);
  for (const std::string& word : go.ignored)
    output_.say("info string go: ignored {}", printable(in_quotes(word, kShown)));
  const UciBudget budget = budget_of(go, games::chess_board(game_.position()).turn, nodes_, overhead_);
  search_.start(game_, budget, std::move(go.searchmoves), show_wdl_);
}

void UciEngine::show_board() {
  output_.say("{}{}", rules_.draw(game_.position()), rules_.position_text(game_.position()));
}

}  // namespace quern::cli
