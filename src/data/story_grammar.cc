#include "data/story_grammar.h"

#include <cmath>
#include <functional>

#include "core/error.h"

namespace quern::data {
namespace {

using Part = StoryGrammar::Part;
using PartValue = std::function<double(const Part&)>;
using ChoiceValue = std::function<double(double probability)>;

// The expected sum, over one text, of part(p) for every part written and choice(p) for every alternative chosen. One
// value is stored per rule, so rules that a text can reach many times are summed once.
class Expectation {
 public:
  Expectation(const StoryGrammar& grammar, PartValue part, ChoiceValue choice)
      : grammar_(grammar), part_(std::move(part)), choice_(std::move(choice)), values_(grammar.rules().size(), NAN) {}

  double of_rule(size_t index) {
    double& value = values_[index];
    if (!std::isnan(value)) return value;
    const StoryGrammar::Rule& rule = grammar_.rules()[index];
    double sum = 0;
    for (const StoryGrammar::Alternative& alternative : rule.alternatives) {
      const double p = static_cast<double>(alternative.weight) / static_cast<double>(rule.weight);
      sum += p * (choice_(p) + of_parts(alternative.parts));
    }
    return value = sum;
  }

 private:
  double of_parts(const std::vector<Part>& parts) {
    double sum = 0;
    for (const Part& part : parts) sum += part.kind == Part::Kind::kRule ? of_rule(part.index) : part_(part);
    return sum;
  }

  const StoryGrammar& grammar_;
  PartValue part_;
  ChoiceValue choice_;
  std::vector<double> values_;
};

}  // namespace

std::string StoryGrammar::cell(const Part& part, size_t row) const {
  std::string text = tables_[variables_[part.index].table].rows[row][part.column];
  if (part.capital && text[0] >= 'a' && text[0] <= 'z') text[0] = static_cast<char>(text[0] - 'a' + 'A');
  return text;
}

size_t StoryGrammar::choices(size_t variable) const {
  const Variable& drawn = variables_[variable];
  return tables_[drawn.table].rows.size() - (drawn.other_than == kNone ? 0 : 1);
}

double StoryGrammar::entropy_nats() const {
  const auto draw = [this](const Part& part) {
    return part.kind == Part::Kind::kDraw ? std::log(static_cast<double>(choices(part.index))) : 0.0;
  };
  return Expectation(*this, draw, [](double p) { return -std::log(p); }).of_rule(0);
}

double StoryGrammar::expected_bytes() const {
  const auto length = [this](const Part& part) {
    if (part.kind == Part::Kind::kText) return static_cast<double>(part.text.size());
    const auto& rows = tables_[variables_[part.index].table].rows;
    size_t bytes = 0;
    for (const std::vector<std::string>& row : rows) bytes += row[part.column].size();
    return static_cast<double>(bytes) / static_cast<double>(rows.size());
  };
  return Expectation(*this, length, [](double) { return 0.0; }).of_rule(0);
}

}  // namespace quern::data
