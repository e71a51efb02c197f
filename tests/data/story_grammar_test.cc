#include "data/story_grammar.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "data/files.h"
#include "data/stories.h"

namespace quern::data {
namespace {

using test::contains;
using test::error_of;
using Part = StoryGrammar::Part;
using Rows = std::vector<size_t>;

constexpr std::string_view kSmall = R"(
# Two people, an animal, a rule that is reached twice.
%person name he
  Anna | she
  Ben | he
  Christopher | he
%animal name
  cat
  tiger
$hero person
$friend person hero
$pet animal
=Story
  2: {hero!} met <Who>. {He} <Did>.
  Long ago {hero!} <Did> and <Did>.
=Who
  {friend!}
  3: a {pet!} called {hero}
=Did
  4: ran
  sang
)";

// Every text of a grammar with its probability, by walking through all derivations.
class AllTexts {
 public:
  explicit AllTexts(const StoryGrammar& grammar) : grammar_(grammar), rows_(grammar.variables().size()) {
    Part start;
    start.kind = Part::Kind::kRule;
    walk({start}, "", 1.0);
  }
  const std::map<std::string, double>& texts() const { return texts_; }

 private:
  void walk(std::vector<Part> rest, const std::string& text, double p) {
    if (rest.empty()) {
      texts_[text] += p;
      return;
    }
    const Part part = rest.front();
    rest.erase(rest.begin());
    if (part.kind == Part::Kind::kText) return walk(rest, text + part.text, p);
    if (part.kind == Part::Kind::kMention) return walk(rest, text + grammar_.cell(part, rows_[part.index]), p);
    if (part.kind == Part::Kind::kDraw) return walk_rows(part, rest, text, p);
    const StoryGrammar::Rule& rule = grammar_.rules()[part.index];
    for (const StoryGrammar::Alternative& alternative : rule.alternatives) {
      std::vector<Part> parts = alternative.parts;
      parts.insert(parts.end(), rest.begin(), rest.end());
      walk(parts, text, p * static_cast<double>(alternative.weight) / static_cast<double>(rule.weight));
    }
  }

  void walk_rows(const Part& part, const std::vector<Part>& rest, const std::string& text, double p) {
    const StoryGrammar::Variable& variable = grammar_.variables()[part.index];
    for (size_t row = 0; row < grammar_.tables()[variable.table].rows.size(); ++row) {
      if (variable.other_than != StoryGrammar::kNone && rows_[variable.other_than] == row) continue;
      rows_[part.index] = row;
      walk(rest, text + grammar_.cell(part, row), p / static_cast<double>(grammar_.choices(part.index)));
    }
  }

  const StoryGrammar& grammar_;
  Rows rows_;
  std::map<std::string, double> texts_;
};

TEST(StoryGrammar, EntropyAndLengthMatchEnumeration) {
  const StoryGrammar grammar(kSmall);
  const AllTexts all(grammar);
  double total = 0, entropy = 0, length = 0;
  for (const auto& [text, p] : all.texts()) {
    total += p;
    entropy -= p * std::log(p);
    length += p * static_cast<double>(text.size());
  }
  EXPECT_EQ(all.texts().size(), 3u * (2 + 2) * 2 + 3u * 2 * 2);
  EXPECT_TRUE(all.texts().contains("Anna met a tiger called Anna. She ran."));
  EXPECT_FALSE(all.texts().contains("Anna met Anna. She ran."));
  EXPECT_NEAR(total, 1.0, 1e-12);
  EXPECT_NEAR(grammar.entropy_nats(), entropy, 1e-12);
  EXPECT_NEAR(grammar.expected_bytes(), length, 1e-10);
}

TEST(StoryGrammar, BadLineIsNamed) {
  const auto read = [](std::string_view text) { return error_of([text] { StoryGrammar grammar(text); }); };
  EXPECT_EQ(read("=Story\n  <Nobody>\n"), "[stories] grammar:2: expected a name that is defined, found Nobody");
  EXPECT_TRUE(contains(read("%t name\n  a\n  b | c\n"), "grammar:3: expected 1 columns, found 2"));
  EXPECT_TRUE(contains(read("$v t\n"), "grammar:1: expected a name that is defined, found t"));
  EXPECT_TRUE(contains(read("=Story\n  {x\n"), "expected > or }"));
  EXPECT_TRUE(contains(read("=Story\n  {x}\n"), "found hero"));
  EXPECT_TRUE(contains(read("%t name\n  a\n  b\n$hero t\n=Story\n  {hero.age}\n"), "found hero.age"));
  EXPECT_TRUE(contains(read("=Story\n  0: a\n"), "weight"));
  EXPECT_TRUE(contains(read("=A\n  <B>\n=B\n  <A>\n"), "expected no cycle"));
  EXPECT_TRUE(contains(read("=A\n"), "expected an alternative"));
  EXPECT_TRUE(contains(read("?"), "expected a name"));
  EXPECT_TRUE(contains(read(""), "expected a rule"));
}

// The conditions of story_grammar.h under which every text has one derivation.
class Conditions {
 public:
  explicit Conditions(const StoryGrammar& grammar) : grammar_(grammar) {}

  // Every pair of alternatives of a rule, and every pair of rows of a draw, that a reader could confuse.
  std::vector<std::string> confusions() const {
    std::vector<std::string> found;
    for (const StoryGrammar::Rule& rule : grammar_.rules()) {
      for (size_t a = 0; a < rule.alternatives.size(); ++a) {
        check_draws(rule.alternatives[a], found);
        for (size_t b = a + 1; b < rule.alternatives.size(); ++b) {
          Rows rows(grammar_.variables().size(), StoryGrammar::kNone);
          if (confused(rule.alternatives[a].parts, rule.alternatives[b].parts, rows)) {
            found.push_back(rule.name + " " + std::to_string(a) + " " + std::to_string(b));
          }
        }
      }
    }
    return found;
  }

  // Every mention of a variable that may not be drawn yet, every second draw, as a derivation could meet them.
  std::vector<std::string> unbound() {
    after_rule(0, 0);
    return {unbound_.begin(), unbound_.end()};
  }

 private:
  static bool prefix(const std::string& a, const std::string& b) { return a.starts_with(b) || b.starts_with(a); }

  void check_draws(const StoryGrammar::Alternative& alternative, std::vector<std::string>& found) const {
    for (const Part& part : alternative.parts) {
      if (part.kind != Part::Kind::kDraw) continue;
      const size_t rows = grammar_.tables()[grammar_.variables()[part.index].table].rows.size();
      for (size_t a = 0; a < rows; ++a) {
        for (size_t b = a + 1; b < rows; ++b) {
          if (prefix(grammar_.cell(part, a), grammar_.cell(part, b))) found.push_back(grammar_.cell(part, a));
        }
      }
    }
  }

  // The first variable that a head mentions and `rows` does not hold, or kNone.
  size_t open_variable(const std::vector<Part>& parts, const Rows& rows) const {
    for (const Part& part : parts) {
      if (part.kind == Part::Kind::kRule || part.kind == Part::Kind::kDraw) break;
      if (part.kind == Part::Kind::kMention && rows[part.index] == StoryGrammar::kNone) return part.index;
    }
    return StoryGrammar::kNone;
  }

  // Whether for any rows of the variables that the heads mention, a head of one is a prefix of a head of the other.
  bool confused(const std::vector<Part>& a, const std::vector<Part>& b, Rows& rows) const {
    size_t open = open_variable(a, rows);
    if (open == StoryGrammar::kNone) open = open_variable(b, rows);
    if (open == StoryGrammar::kNone) {
      for (const std::string& x : heads(a, rows)) {
        for (const std::string& y : heads(b, rows)) {
          if (prefix(x, y)) return true;
        }
      }
      return false;
    }
    bool any = false;
    for (size_t row = 0; row < grammar_.tables()[grammar_.variables()[open].table].rows.size(); ++row) {
      rows[open] = row;
      any = any || (possible(rows) && confused(a, b, rows));
    }
    rows[open] = StoryGrammar::kNone;
    return any;
  }

  bool possible(const Rows& rows) const {
    for (size_t v = 0; v < rows.size(); ++v) {
      const size_t other = grammar_.variables()[v].other_than;
      if (other != StoryGrammar::kNone && rows[v] != StoryGrammar::kNone && rows[v] == rows[other]) return false;
    }
    return true;
  }

  // A first part that is a rule gives "", a prefix of everything: such an alternative is confused with any other.
  std::vector<std::string> heads(const std::vector<Part>& parts, const Rows& rows) const {
    std::string head;
    for (const Part& part : parts) {
      if (part.kind == Part::Kind::kRule) break;
      if (part.kind == Part::Kind::kDraw) {
        return head.empty() ? column(part) : std::vector<std::string>{head};
      }
      head += part.kind == Part::Kind::kText ? part.text : grammar_.cell(part, rows[part.index]);
    }
    return {head};
  }

  std::vector<std::string> column(const Part& part) const {
    std::vector<std::string> cells;
    for (size_t row = 0; row < grammar_.tables()[grammar_.variables()[part.index].table].rows.size(); ++row) {
      cells.push_back(grammar_.cell(part, row));
    }
    return cells;
  }

  // The sets of drawn variables, as bits, that a text of the rule can leave behind when it starts with `bound`.
  std::set<uint64_t> after_rule(size_t rule, uint64_t bound) {
    if (const auto known = after_.find({rule, bound}); known != after_.end()) return known->second;
    std::set<uint64_t> result;
    for (const StoryGrammar::Alternative& alternative : grammar_.rules()[rule].alternatives) {
      std::set<uint64_t> states = {bound};
      for (const Part& part : alternative.parts) {
        std::set<uint64_t> next;
        for (const uint64_t state : states) next.merge(after_part(rule, part, state));
        states = next;
      }
      result.merge(states);
    }
    return after_[{rule, bound}] = result;
  }

  std::set<uint64_t> after_part(size_t rule, const Part& part, uint64_t bound) {
    if (part.kind == Part::Kind::kText) return {bound};
    if (part.kind == Part::Kind::kRule) return after_rule(part.index, bound);
    const uint64_t bit = uint64_t{1} << part.index;
    const bool draw = part.kind == Part::Kind::kDraw;
    const size_t other = grammar_.variables()[part.index].other_than;
    const bool other_missing = draw && other != StoryGrammar::kNone && (bound >> other & 1) == 0;
    if (((bound & bit) != 0) == draw || other_missing) {
      unbound_.insert(grammar_.rules()[rule].name + " " + grammar_.variables()[part.index].name);
    }
    return {bound | bit};
  }

  const StoryGrammar& grammar_;
  std::map<std::pair<size_t, uint64_t>, std::set<uint64_t>> after_;
  std::set<std::string> unbound_;
};

using Names = std::vector<std::string>;

TEST(StoryGrammar, ConditionsDetectAmbiguity) {
  const auto confusions = [](std::string_view text) { return Conditions(StoryGrammar(text)).confusions(); };
  constexpr std::string_view kNames =
      "%t name\n  Tim\n  Tom\n%long name\n  Tim\n  Timmy\n$hero t\n$friend t hero\n$x long\n";
  const std::string names(kNames);
  EXPECT_EQ(confusions(names + "=S\n  a\n  b\n"), Names{});
  EXPECT_EQ(confusions(names + "=S\n  a\n  ab\n"), Names{"S 0 1"});
  EXPECT_EQ(confusions(names + "=S\n  {x!}\n"), Names{"Tim"});
  EXPECT_EQ(confusions(names + "=S\n  {hero!} and {friend!} <A>\n=A\n  {hero} ran\n  {friend} ran\n"), Names{});
  EXPECT_EQ(confusions(names + "=S\n  {hero!} and {x!} <A>\n=A\n  {hero} ran\n  {x} ran\n"), (Names{"Tim", "A 0 1"}));
  EXPECT_EQ(confusions(names + "=S\n  {hero!}\n  Tom and Tim\n"), Names{"S 0 1"});
  EXPECT_EQ(confusions(names + "=S\n  <A>\n  b\n=A\n  a\n"), Names{"S 0 1"});
}

TEST(StoryGrammar, ConditionsDetectUnboundNames) {
  const std::string names = "%t name\n  Tim\n  Tom\n$hero t\n$friend t hero\n";
  const auto unbound = [&](const std::string& rules) {
    const StoryGrammar grammar(names + rules);
    return Conditions(grammar).unbound();
  };
  EXPECT_EQ(unbound("=S\n  {hero!} <A>\n=A\n  {hero}\n"), Names{});
  EXPECT_EQ(unbound("=S\n  <A> {hero}\n=A\n  {hero!}\n  nobody\n"), Names{"S hero"});
  EXPECT_EQ(unbound("=S\n  {hero!} <A>\n=A\n  {hero!}\n"), Names{"A hero"});
  EXPECT_EQ(unbound("=S\n  {friend!}\n"), Names{"S friend"});
}

TEST(StoryGrammar, EveryStoryHasOneDerivation) {
  EXPECT_EQ(Conditions(story_grammar()).confusions(), Names{});
  EXPECT_EQ(Conditions(story_grammar()).unbound(), Names{});
}

// Prefix-free is not enough at the end: the text after the last choice must not contain the separator.
TEST(StoryGrammar, StoriesAreOneLineOfAscii) {
  for (const StoryGrammar::Rule& rule : story_grammar().rules()) {
    for (const StoryGrammar::Alternative& alternative : rule.alternatives) {
      for (const Part& part : alternative.parts) {
        for (const char c : part.text) EXPECT_TRUE(c >= ' ' && c <= '~') << rule.name << ": " << part.text;
      }
    }
  }
  for (const StoryGrammar::Table& table : story_grammar().tables()) {
    for (const auto& row : table.rows) {
      for (const std::string& cell : row) {
        for (const char c : cell) EXPECT_TRUE(c >= ' ' && c <= '~') << cell;
      }
    }
  }
}

}  // namespace
}  // namespace quern::data
