#include "cli/uci_search.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <utility>

#include "core/clock.h"
#include "learn/settings.h"

namespace quern::cli {
namespace {

// Simulations between two looks at the clock, apart from the one after each evaluation: those that end in proven
// positions take none.
constexpr uint32_t kChunk = 64;

// A position of chess takes about 1 KB in the tree. A search of the size of memory ends, or waits to be stopped.
constexpr size_t kMaxTreeNodes = 2'000'000;

constexpr double kReportEvery = 1.0;  // seconds
constexpr size_t kMaxLine = 40;       // moves of a line that is shown

// Hundredths of a pawn that the expected score of a game (0 to 1) corresponds to: 400 log10(s / (1 - s)), as if a pawn
// were worth 100 Elo.
int centipawns(const selfplay::Wdl& value) {
  const double score = std::clamp((1.0 + static_cast<double>(value.score())) / 2, 1e-6, 1 - 1e-6);
  return static_cast<int>(std::lround(400 * std::log10(score / (1 - score))));
}

// In thousandths, with a sum of 1000.
std::string wdl_text(const selfplay::Wdl& value) {
  const long win = std::lround(1000 * value.win), loss = std::min(std::lround(1000 * value.loss), 1000 - win);
  return fmt::format(" wdl {} {} {}", win, 1000 - win - loss, loss);
}

}  // namespace

UciSearch::UciSearch(const learn::SavedNetwork& network, UciOutput& output)
    : game_(*network.game),
      output_(output),
      thinker_(network.game->spec(), network.network, learn::search_settings(network.config)) {}

void UciSearch::start(const UciGame& game, const UciBudget& budget, std::vector<std::string> searchmoves,
                      bool show_wdl) {
  stop();
  stopping_.store(false, std::memory_order_relaxed);  // the thread does not run
  task_ = {game.searched_position(), budget, std::move(searchmoves), show_wdl, seconds_now()};
  reported_ = task_.begun;
  if (!task_.position->over()) set_root(game, *task_.position);
  thread_ = std::thread([this] { run(); });
}

void UciSearch::stop() {
  if (!thread_.joinable()) return;
  stopping_.store(true, std::memory_order_relaxed);
  stopping_.notify_all();
  thread_.join();
}

// Keeps what was found about the position, if the game went on from the root of the last search.
void UciSearch::set_root(const UciGame& game, const games::Position& position) {
  std::vector<games::Action> moves;
  if (rooted_ && game.moves_from(thinker_.search().position().hash(), moves)) {
    for (const games::Action move : moves) thinker_.advance(move);
  }
  if (!rooted_ || thinker_.search().position().hash() != position.hash()) thinker_.set(position);
  if (thinker_.search().nodes() >= kMaxTreeNodes) thinker_.set(position);
  rooted_ = true;
  kept_ = thinker_.search().root_visits();
}

void UciSearch::run() noexcept {
  try {
    if (!task_.position->over()) think();
  } catch (const std::exception& error) {
    output_.say("info string {}", error.what());
    rooted_ = false;
  }
  if (task_.budget.infinite) stopping_.wait(false, std::memory_order_relaxed);
  answer();
}

void UciSearch::think() {
  const auto look = [this](const selfplay::Search&) {
    report_now_and_then();
    return expired();
  };
  do {
    const uint64_t left = task_.budget.nodes - std::min(task_.budget.nodes, nodes());
    const uint32_t before = thinker_.search().root_visits();
    thinker_.search_more(static_cast<uint32_t>(std::min<uint64_t>(left, kChunk)), look);
    if (thinker_.search().root_visits() == before) break;  // the result is proven
  } while (!expired());
}

bool UciSearch::expired() const {
  return stopping_.load(std::memory_order_relaxed) || nodes() >= task_.budget.nodes ||
         thinker_.search().root_proof() != selfplay::Proof::kNone || thinker_.search().nodes() >= kMaxTreeNodes ||
         (task_.budget.seconds && seconds_now() - task_.begun >= *task_.budget.seconds);
}

uint64_t UciSearch::nodes() const { return thinker_.search().root_visits() - kept_; }

void UciSearch::report_now_and_then() {
  if (seconds_now() - reported_ < kReportEvery) return;
  report();
  reported_ = seconds_now();
}

std::vector<games::Action> UciSearch::best_line() const {
  std::vector<games::Action> line = thinker_.search().line_to_end();
  return line.empty() ? thinker_.search().line(kMaxLine) : line;
}

std::string UciSearch::texts(const std::vector<games::Action>& line) const {
  std::string text;
  const std::unique_ptr<games::Position> position = task_.position->clone();
  for (const games::Action action : line) {
    text += ' ' + game_.action_text(*position, action);
    position->play(action);
  }
  return text;
}

void UciSearch::report() {
  const selfplay::Search& search = thinker_.search();
  const std::vector<games::Action> line = best_line();
  const selfplay::Wdl value = search.root_value();
  const bool mates = !search.line_to_end().empty();
  const auto moves = static_cast<long>(line.size() + 1) / 2;
  const std::string score =
      mates ? fmt::format("mate {}", value.win > 0 ? moves : -moves) : fmt::format("cp {}", centipawns(value));
  const double seconds = seconds_now() - task_.begun;
  output_.say("info depth {} score {}{} nodes {} nps {:.0f} time {:.0f} pv{}", line.size(), score,
              task_.show_wdl ? wdl_text(value) : "", nodes(), static_cast<double>(nodes()) / std::max(seconds, 1e-3),
              1000 * seconds, texts(line));
}

// A legal move, whatever happened before; UCI's name for no move if there is none.
void UciSearch::answer() noexcept {
  try {
    if (rooted_ && !task_.position->over() && thinker_.search().nodes() > 0) {
      report();
      return output_.say("bestmove {}", best_move());
    }
    const std::vector<std::string> moves = uci_moves(*task_.position);
    output_.say("bestmove {}", moves.empty() ? "(none)" : moves[0]);
  } catch (const std::exception& error) {
    output_.say("info string {}", error.what());
  }
}

// The best of `searchmoves`, if any of them is legal.
std::string UciSearch::best_move() const {
  if (!task_.searchmoves.empty()) {
    for (const selfplay::RankedMove& move : selfplay::ranked_moves(thinker_.search())) {
      std::string text = game_.action_text(*task_.position, move.action);
      if (std::ranges::find(task_.searchmoves, text) != task_.searchmoves.end()) return text;
    }
  }
  return game_.action_text(*task_.position, best_line().at(0));
}

}  // namespace quern::cli
