// A probabilistic grammar with memory, read from text.
//
//   %person name he his        a table and the names of its columns; every row is equally likely
//     Anna | she | her
//   $hero person               a variable that holds a row of the table
//   $friend person hero        ... and never the row that `hero` holds
//   =Story                     a rule; the first one is where a text starts
//     3: {hero!} met <Who>.    an alternative of weight 3 (default 1)
//
// In an alternative, <Who> stands for a text of that rule, {hero!} draws the variable and writes its column `name`,
// {hero} writes it again, {hero.his} writes another column ({hero!.his} draws), {his} is short for {hero.his}, and a
// capitalized column name writes a capital. References between rules must not form a cycle. Lines that start with # are
// comments.
//
// Entropy in closed form. Let a text be derived by choosing alternatives with probability weight / sum of weights, and
// rows uniformly. If every text has one derivation (see below), the probability of a text is that of its choices, and
// by the chain rule its entropy is the expected sum of the entropies of the choices made:
//   H(rule) = sum over alternatives a of p(a) * (-log p(a) + sum over the rules r in a of H(r)
//                                                          + sum over the draws d in a of log(rows d can take)).
// The choice of alternatives never depends on rows, and a row is uniform over its table (each row of a uniform pair of
// different rows is uniform too). So the expected length is the same sum with the lengths of the written parts, where a
// column counts with its mean length.
//
// One derivation. The heads of an alternative are all texts it can start with, up to its first rule or draw (if it
// starts with one, the heads of that rule or the columns of the draw). If no head of an alternative is a prefix of a
// head of another alternative of the rule, and no value of a drawn column is a prefix of another, then a left-to-right
// reader can identify every choice as soon as it occurs. The tests check this for every choice of kStoryRules.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace quern::data {

class StoryGrammar {
 public:
  struct Table {
    std::string name;
    std::vector<std::string> columns;
    std::vector<std::vector<std::string>> rows;
  };
  struct Variable {
    std::string name;
    size_t table;
    size_t other_than;  // a variable whose row is excluded, or kNone
  };
  struct Part {
    enum class Kind { kText, kRule, kDraw, kMention };
    Kind kind = Kind::kText;
    std::string text;   // kText
    size_t index = 0;   // of the rule or variable
    size_t column = 0;  // kDraw, kMention
    bool capital = false;
  };
  struct Alternative {
    uint64_t weight = 1;
    std::vector<Part> parts;
  };
  struct Rule {
    std::string name;
    uint64_t weight = 0;  // of all alternatives
    std::vector<Alternative> alternatives;
  };
  static constexpr size_t kNone = SIZE_MAX;

  // Error, with the line, if the text is not a valid grammar.
  explicit StoryGrammar(std::string_view text);

  const std::vector<Table>& tables() const { return tables_; }
  const std::vector<Variable>& variables() const { return variables_; }
  const std::vector<Rule>& rules() const { return rules_; }

  // The text that a draw or mention writes for a row.
  std::string cell(const Part& part, size_t row) const;
  // The number of rows that a draw of the variable can take.
  size_t choices(size_t variable) const;

  // Exact values for one text of the first rule.
  double entropy_nats() const;
  double expected_bytes() const;

 private:
  friend class StoryGrammarReader;

  std::vector<Table> tables_;
  std::vector<Variable> variables_;
  std::vector<Rule> rules_;
};

}  // namespace quern::data
