#include "cli/uci_go.h"

#include <algorithm>
#include <charconv>

#include "cli/uci_words.h"

namespace quern::cli {
namespace {

constexpr uint64_t kMaxTime = uint64_t{1} << 40;  // milliseconds: 35 years
constexpr uint64_t kMaxNodes = 1'000'000'000;     // of the settings of search
constexpr uint64_t kMovesToGo = 30;               // of a game without a time control ahead

// nullopt for what is no number; a number out of range becomes the nearest one in it.
std::optional<uint64_t> number_of(std::string_view text, uint64_t most) {
  const bool negative = text.starts_with('-');
  if (negative) text.remove_prefix(1);
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (end != text.data() + text.size() || text.empty() || error == std::errc::invalid_argument) return std::nullopt;
  if (negative) return 0;
  return error == std::errc::result_out_of_range ? most : std::min(value, most);
}

bool looks_like_move(std::string_view word) {
  const auto square = [&](size_t i) {
    return word[i] >= 'a' && word[i] <= 'h' && word[i + 1] >= '1' && word[i + 1] <= '8';
  };
  return (word.size() == 4 || word.size() == 5) && square(0) && square(2);
}

class GoReader {
 public:
  explicit GoReader(std::string_view text) : words_(text) {}

  UciGo read() {
    while (const auto word = words_.next()) {
      if (!read_flag(*word) && !read_number(*word)) go_.ignored.emplace_back(*word);
    }
    return std::move(go_);
  }

 private:
  bool read_flag(std::string_view word) {
    if (word == "infinite") {
      go_.infinite = true;
    } else if (word == "searchmoves") {
      while (words_.peek() && looks_like_move(*words_.peek())) go_.searchmoves.emplace_back(*words_.next());
    } else {
      return word == "ponder";
    }
    return true;
  }

  bool read_number(std::string_view word) {
    const bool known = word == "nodes" || word == "movetime" || word == "movestogo" || word == "wtime" ||
                       word == "btime" || word == "winc" || word == "binc" || word == "depth" || word == "mate";
    if (!known) return false;
    const auto value = words_.peek() ? number_of(*words_.peek(), word == "nodes" ? kMaxNodes : kMaxTime) : std::nullopt;
    if (!value) return false;
    words_.next();
    store(word, *value);
    return true;
  }

  void store(std::string_view word, uint64_t value) {
    const size_t color = word[0] == 'w' ? games::chess::kWhite : games::chess::kBlack;
    if (word == "nodes") go_.nodes = value;
    if (word == "movetime") go_.movetime = value;
    if (word == "movestogo") go_.movestogo = value;
    if (word == "wtime" || word == "btime") go_.time[color] = value;
    if (word == "winc" || word == "binc") go_.increment[color] = value;
  }

  UciWords words_;
  UciGo go_;
};

// Milliseconds for a move with `left` on the clock.
uint64_t share_of_clock(uint64_t left, uint64_t increment, const UciGo& go) {
  const uint64_t moves = std::max<uint64_t>(go.movestogo.value_or(kMovesToGo), 1);
  return std::min(left / moves + increment / 4 * 3, left / 2);
}

}  // namespace

UciGo read_go(std::string_view text) { return GoReader(text).read(); }

UciBudget budget_of(const UciGo& go, games::chess::Color turn, uint64_t nodes, uint64_t overhead) {
  std::optional<uint64_t> time = go.movetime;
  if (const auto& left = go.time[turn]; left && !go.infinite) {
    const uint64_t share = share_of_clock(*left, go.increment[turn], go);
    time = std::min(time.value_or(share), share);
  }
  UciBudget budget{.nodes = kMaxNodes, .seconds = {}, .infinite = go.infinite};
  if (time) budget.seconds = 1e-3 * static_cast<double>(std::max<uint64_t>(*time - std::min(*time, overhead), 1));
  if (!time && !go.infinite) budget.nodes = nodes;
  if (go.nodes) budget.nodes = std::max<uint64_t>(*go.nodes, 1);
  return budget;
}

}  // namespace quern::cli
