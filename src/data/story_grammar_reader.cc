#include <algorithm>
#include <cctype>
#include <charconv>
#include <optional>
#include <utility>

#include "core/error.h"
#include "data/story_grammar.h"

namespace quern::data {
namespace {

using Part = StoryGrammar::Part;

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(' ');
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(' ') - begin + 1);
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (true) {
    const size_t length = text.find(separator);
    if (const std::string_view part = trimmed(text.substr(0, length)); !part.empty()) parts.emplace_back(part);
    if (length == std::string_view::npos) return parts;
    text.remove_prefix(length + 1);
  }
}

// The index of the element with this name, if it exists.
template <typename Named>
std::optional<size_t> find_named(const std::vector<Named>& elements, std::string_view name) {
  const auto found = std::find_if(elements.begin(), elements.end(), [name](const Named& e) { return e.name == name; });
  if (found == elements.end()) return std::nullopt;
  return static_cast<size_t>(found - elements.begin());
}

}  // namespace

// Makes two passes over the lines: names first, because a rule may refer to a later one.
class StoryGrammarReader {
 public:
  StoryGrammarReader(StoryGrammar& grammar, std::string_view text) : grammar_(grammar) {
    for_each_line(text, [this](std::string_view line) { declare(line); });
    for_each_line(text, [this](std::string_view line) { define(line); });
    check();
  }

 private:
  template <typename Visit>
  void for_each_line(std::string_view text, Visit visit) {
    line_ = 0;
    section_ = ' ';
    while (!text.empty()) {
      const size_t length = std::min(text.find('\n'), text.size());
      const std::string_view line = text.substr(0, length);
      text.remove_prefix(std::min(length + 1, text.size()));
      ++line_;
      if (!trimmed(line).empty() && line[0] != '#') visit(line);
    }
  }

  [[noreturn]] void fail(std::string_view what) const { throw Error("[stories] grammar:{}: {}", line_, what); }

  template <typename Named>
  size_t known(const std::vector<Named>& elements, std::string_view name) const {
    const std::optional<size_t> index = find_named(elements, name);
    if (!index) fail(fmt::format("expected a name that is defined, found {}", name));
    return *index;
  }

  void declare(std::string_view line) {
    const std::vector<std::string> words = split(line.substr(1), ' ');
    if (line[0] == ' ') return declare_row(line);
    section_ = line[0];
    if (words.empty()) fail("expected a name");
    if (section_ == '%') {
      grammar_.tables_.push_back({words[0], {words.begin() + 1, words.end()}, {}});
    } else if (section_ == '$') {
      if (words.size() < 2 || words.size() > 3) fail("expected $variable table [other variable]");
      const size_t other = words.size() == 3 ? known(grammar_.variables_, words[2]) : StoryGrammar::kNone;
      grammar_.variables_.push_back({words[0], known(grammar_.tables_, words[1]), other});
    } else if (section_ == '=') {
      grammar_.rules_.push_back({words[0], 0, {}});
    } else {
      fail(fmt::format("expected %, $, = or two spaces, found {}", line[0]));
    }
  }

  void declare_row(std::string_view line) {
    if (section_ != '%') return;
    StoryGrammar::Table& table = grammar_.tables_.back();
    std::vector<std::string> cells = split(line, '|');
    if (cells.size() != table.columns.size()) {
      fail(fmt::format("expected {} columns, found {}", table.columns.size(), cells.size()));
    }
    table.rows.push_back(std::move(cells));
  }

  void define(std::string_view line) {
    if (line[0] != ' ') {
      section_ = line[0];
      if (section_ == '=') rule_ = known(grammar_.rules_, trimmed(line.substr(1)));
      return;
    }
    if (section_ == '$') fail("expected no indented line after a variable");
    if (section_ == '=') define_alternative(trimmed(line));
  }

  void define_alternative(std::string_view text) {
    StoryGrammar::Alternative alternative;
    uint64_t weight = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), weight);
    if (error == std::errc() && text.substr(static_cast<size_t>(end - text.data())).starts_with(": ")) {
      if (weight == 0 || weight > 1000000) fail("expected a weight from 1 to 1000000");
      alternative.weight = weight;
      text.remove_prefix(static_cast<size_t>(end - text.data()) + 2);
    }
    while (!text.empty()) alternative.parts.push_back(take_part(text));
    StoryGrammar::Rule& rule = grammar_.rules_[rule_];
    rule.weight += alternative.weight;
    rule.alternatives.push_back(std::move(alternative));
  }

  Part take_part(std::string_view& text) {
    const bool reference = text[0] == '<' || text[0] == '{';
    const size_t end = reference ? text.find(text[0] == '<' ? '>' : '}') : text.find_first_of("<{");
    if (reference && end == std::string_view::npos) fail("expected > or }");
    const std::string_view taken = text.substr(0, end);
    const char kind = text[0];
    text.remove_prefix(std::min(taken.size() + (reference ? 1 : 0), text.size()));
    if (kind == '{') return variable_part(taken.substr(1));
    Part part;
    part.kind = kind == '<' ? Part::Kind::kRule : Part::Kind::kText;
    if (kind == '<') {
      part.index = known(grammar_.rules_, taken.substr(1));
    } else {
      part.text = taken;
    }
    return part;
  }

  // hero, hero!, hero.his, hero!.his, his
  Part variable_part(std::string_view name) {
    const size_t dot = std::min(name.find('.'), name.size());
    std::string_view variable = name.substr(0, dot);
    std::string column(dot < name.size() ? name.substr(dot + 1) : "name");
    Part part;
    part.kind = Part::Kind::kMention;
    if (variable.ends_with('!')) {
      part.kind = Part::Kind::kDraw;
      variable.remove_suffix(1);
    }
    if (dot == name.size() && part.kind == Part::Kind::kMention && !find_named(grammar_.variables_, variable)) {
      column = variable;
      variable = "hero";
    }
    part.index = known(grammar_.variables_, variable);
    part.capital = !column.empty() && std::isupper(static_cast<unsigned char>(column[0])) != 0;
    if (part.capital) column[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(column[0])));
    const auto& columns = grammar_.tables_[grammar_.variables_[part.index].table].columns;
    const auto found = std::find(columns.begin(), columns.end(), column);
    if (found == columns.end()) fail(fmt::format("expected a variable or column, found {}", name));
    part.column = static_cast<size_t>(found - columns.begin());
    return part;
  }

  void check() {
    if (grammar_.rules_.empty()) throw Error("[stories] grammar: expected a rule, found none");
    for (const StoryGrammar::Table& table : grammar_.tables_) {
      if (table.rows.size() < 2) throw Error("[stories] grammar: table {}: expected two rows or more", table.name);
    }
    std::vector<int> state(grammar_.rules_.size(), 0);
    for (size_t rule = 0; rule < grammar_.rules_.size(); ++rule) check_rule(rule, state);
  }

  // state: 0 not visited, 1 being visited, 2 done.
  void check_rule(size_t index, std::vector<int>& state) {
    const StoryGrammar::Rule& rule = grammar_.rules_[index];
    if (rule.alternatives.empty()) throw Error("[stories] grammar: rule {}: expected an alternative", rule.name);
    if (state[index] == 1) throw Error("[stories] grammar: rule {}: expected no cycle, found one", rule.name);
    if (state[index] == 2) return;
    state[index] = 1;
    for (const StoryGrammar::Alternative& alternative : rule.alternatives) {
      for (const Part& part : alternative.parts) {
        if (part.kind == Part::Kind::kRule) check_rule(part.index, state);
      }
    }
    state[index] = 2;
  }

  StoryGrammar& grammar_;
  size_t line_ = 0;
  char section_ = ' ';
  size_t rule_ = 0;
};

StoryGrammar::StoryGrammar(std::string_view text) { StoryGrammarReader(*this, text); }

}  // namespace quern::data
