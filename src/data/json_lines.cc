#include "data/json_lines.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "core/error.h"

namespace quern::data {
namespace {

using Json = nlohmann::json;

// Extracts the string `text` of the outermost object during parsing, without building a tree of the line. The parser's
// stack is on the heap, so deep nesting cannot overflow the call stack.
class TextField : public nlohmann::json_sax<Json> {
 public:
  bool null() override { return scalar("null"); }
  bool boolean(bool) override { return scalar("a boolean"); }
  bool number_integer(int64_t) override { return scalar("a number"); }
  bool number_unsigned(uint64_t) override { return scalar("a number"); }
  bool number_float(double, const std::string&) override { return scalar("a number"); }
  bool binary(Json::binary_t&) override { return scalar("binary data"); }
  bool start_array(std::size_t) override { return scalar("an array") && enter(); }
  bool end_array() override { return leave(); }
  bool end_object() override { return leave(); }

  bool start_object(std::size_t) override {
    if (depth_ > 0 && !scalar("an object")) return false;
    return enter();
  }
  bool key(std::string& name) override {
    is_text_ = depth_ == 1 && name == "text";
    return true;
  }
  bool string(std::string& value) override {
    if (depth_ == 0) return scalar("a string");
    if (!is_text_) return true;
    text_ = std::move(value);
    found_ = true;
    is_text_ = false;
    return true;
  }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception&) override {
    problem_ = fmt::format("found a syntax error at byte {} of the line", position);
    return false;
  }

  bool found() const { return found_; }
  const std::string& text() const { return text_; }
  const std::string& problem() const { return problem_; }

 private:
  // A value that is not a string: allowed in other fields, an error as the line itself and as `text`.
  bool scalar(const char* kind) {
    if (depth_ > 0 && !is_text_) return true;
    problem_ = depth_ == 0 ? fmt::format("found {}", kind) : fmt::format("found {} in the field", kind);
    return false;
  }
  bool enter() {
    ++depth_;
    is_text_ = false;
    return true;
  }
  bool leave() {
    --depth_;
    is_text_ = false;
    return true;
  }

  std::size_t depth_ = 0;
  bool is_text_ = false;  // the next value is the document
  bool found_ = false;
  std::string text_;
  std::string problem_ = "found no such field";
};

void visit_line(std::string_view line, std::string_view file, uint64_t number, const DocumentVisitor& visit) {
  TextField field;
  const bool parsed = Json::sax_parse(line.begin(), line.end(), &field);
  if (!parsed || !field.found()) {
    throw Error("[data] {}:{}: expected a JSON object with a string field \"text\", {}", file, number, field.problem());
  }
  visit(field.text());
}

}  // namespace

void for_each_json_line(std::string_view content, std::string_view file, const DocumentVisitor& visit,
                        uint64_t lines_before) {
  uint64_t number = lines_before;
  while (!content.empty()) {
    const std::size_t length = std::min(content.find('\n'), content.size());
    const std::string_view line = content.substr(0, length);
    content.remove_prefix(std::min(length + 1, content.size()));
    ++number;
    if (line.find_first_not_of(" \t\r") != std::string_view::npos) visit_line(line, file, number, visit);
  }
}

}  // namespace quern::data
