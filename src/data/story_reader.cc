#include <algorithm>
#include <cassert>
#include <cmath>
#include <utility>

#include "data/stories.h"

namespace quern::data {
namespace {

using Part = StoryGrammar::Part;

// Tries every choice that matches the text, by backtracking, and thus counts all derivations. The continuation after a
// part is a list of frames on the stack; the grammar has no cycles, so its depth is bounded by the longest story.
class Reader {
 public:
  Reader(const StoryGrammar& grammar, std::string_view text)
      : grammar_(grammar),
        text_(text),
        rows_(grammar.variables().size(), StoryGrammar::kNone),
        ends_(text.size() + 1, 0.0) {}

  std::optional<StoryReading> read() {
    read_rule(0, nullptr, 0, 0.0);
    if (reading_.derivations == 0) return std::nullopt;
    reading_.surprisal = surprisal();
    return std::move(reading_);
  }

 private:
  struct Frame {
    const std::vector<Part>& parts;
    size_t next;
    const Frame* after;
  };

  void read_rule(size_t index, const Frame* after, size_t at, double log_p) {
    const StoryGrammar::Rule& rule = grammar_.rules()[index];
    for (size_t i = 0; i < rule.alternatives.size(); ++i) {
      const StoryGrammar::Alternative& alternative = rule.alternatives[i];
      const double p = static_cast<double>(alternative.weight) / static_cast<double>(rule.weight);
      choices_.push_back(static_cast<uint32_t>(i));
      read_frame({alternative.parts, 0, after}, at, log_p + std::log(p));
      choices_.pop_back();
    }
  }

  void read_frame(Frame frame, size_t at, double log_p) {
    for (; frame.next < frame.parts.size(); ++frame.next) {
      const Part& part = frame.parts[frame.next];
      const Frame rest{frame.parts, frame.next + 1, frame.after};
      if (part.kind == Part::Kind::kRule) return read_rule(part.index, &rest, at, log_p);
      if (part.kind == Part::Kind::kDraw) return read_draw(part, rest, at, log_p);
      if (!take(part.kind == Part::Kind::kText ? part.text : mention(part), at, log_p)) return;
    }
    if (frame.after != nullptr) return read_frame(*frame.after, at, log_p);
    if (at == text_.size()) found(log_p);
    ends_[at] += std::exp(log_p);
  }

  void read_draw(const Part& part, const Frame& rest, size_t at, double log_p) {
    const StoryGrammar::Variable& variable = grammar_.variables()[part.index];
    const size_t taken = variable.other_than == StoryGrammar::kNone ? StoryGrammar::kNone : rows_[variable.other_than];
    const size_t before = rows_[part.index];
    log_p -= std::log(static_cast<double>(grammar_.choices(part.index)));
    for (size_t row = 0; row < grammar_.tables()[variable.table].rows.size(); ++row) {
      size_t end = at;
      if (row == taken || !take(grammar_.cell(part, row), end, log_p)) continue;
      rows_[part.index] = row;
      choices_.push_back(static_cast<uint32_t>(row));
      read_frame(rest, end, log_p);
      choices_.pop_back();
    }
    rows_[part.index] = before;
  }

  std::string mention(const Part& part) const {
    assert(rows_[part.index] != StoryGrammar::kNone);
    return grammar_.cell(part, rows_[part.index]);
  }

  // A derivation that deviates from the text ends here, with its probability so far.
  bool take(std::string_view expected, size_t& at, double log_p) {
    const std::string_view rest = text_.substr(at);
    const auto [difference, ignored] = std::mismatch(expected.begin(), expected.end(), rest.begin(), rest.end());
    at += static_cast<size_t>(difference - expected.begin());
    if (difference == expected.end()) return true;
    ends_[at] += std::exp(log_p);
    return false;
  }

  // The derivations that match the first n bytes are those that end at n or later. The surprisal of byte n is the
  // logarithm of the factor by which their probability shrinks.
  std::vector<double> surprisal() const {
    std::vector<double> nats(text_.size());
    double after = ends_.back();
    for (size_t n = text_.size(); n-- > 0;) {
      const double before = after + ends_[n];
      nats[n] = std::log(before / after);
      after = before;
    }
    return nats;
  }

  void found(double log_p) {
    if (reading_.derivations++ == 0) {
      reading_.log_probability = log_p;
      reading_.choices = choices_;
    }
  }

  const StoryGrammar& grammar_;
  std::string_view text_;
  std::vector<size_t> rows_;
  std::vector<uint32_t> choices_;
  std::vector<double> ends_;  // probability of the derivations that match exactly this many bytes of the text
  StoryReading reading_ = {};
};

}  // namespace

std::optional<StoryReading> read_story(std::string_view text) {
  const std::string_view end = text.ends_with(kStoryEnd) ? kStoryEnd : "";
  std::optional<StoryReading> reading = Reader(story_grammar(), text.substr(0, text.size() - end.size())).read();
  if (reading) reading->surprisal.resize(text.size(), 0.0);  // the end of a story is no surprise
  return reading;
}

}  // namespace quern::data
