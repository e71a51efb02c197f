#include "data/json_lines.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/text.h"

namespace quern::data {
namespace {

using Json = nlohmann::json;

std::vector<std::string_view> split_at_dots(std::string_view path) {
  std::vector<std::string_view> names;
  for (;;) {
    const size_t dot = path.find('.');
    names.push_back(path.substr(0, dot));
    if (dot == std::string_view::npos) return names;
    path.remove_prefix(dot + 1);
  }
}

// Extracts a string field during parsing, without building a tree of the line. The parser's stack is on the heap, so
// deep nesting cannot overflow the call stack.
class TextField : public nlohmann::json_sax<Json> {
 public:
  // `lists_fields`: for the message about a line that lacks the field.
  TextField(std::string_view field, bool lists_fields)
      : field_(field), names_(split_at_dots(field)), lists_fields_(lists_fields) {}

  bool null() override { return scalar("null"); }
  bool boolean(bool) override { return scalar("a boolean"); }
  bool number_integer(int64_t) override { return scalar("a number"); }
  bool number_unsigned(uint64_t) override { return scalar("a number"); }
  bool number_float(double, const std::string&) override { return scalar("a number"); }
  bool binary(Json::binary_t&) override { return scalar("binary data"); }
  bool start_array(std::size_t) override { return scalar("an array") && enter(false); }
  bool end_array() override { return leave(); }
  bool end_object() override { return leave(); }

  bool start_object(std::size_t) override {
    const bool on_path = depth_ == 0 || (is_next_ && depth_ < names_.size());
    if (depth_ > 0 && !on_path && !scalar("an object")) return false;
    if (depth_ == 1 && on_path) note("an object");
    return enter(on_path);
  }
  bool key(std::string& name) override {
    is_text_ = depth_ == 1 && name == field_;
    is_next_ = depth_ == path_ && depth_ <= names_.size() && name == names_[depth_ - 1];
    is_text_ |= is_next_ && depth_ == names_.size();
    if (lists_fields_ && depth_ == 1) key_ = name;
    return true;
  }
  bool string(std::string& value) override {
    if (depth_ == 0) return scalar("a string");
    if (depth_ == 1) note("a string");
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

  std::string problem() const {
    if (!problem_.empty()) return problem_;
    if (fields_.empty()) return "found no such field and no other";
    return fmt::format("found no such field but {}; choose one with data.field", fmt::join(fields_, ", "));
  }

 private:
  static constexpr size_t kMaxNoted = 10;

  // A value that is not a string: allowed in other fields, an error as the line itself and as the document.
  bool scalar(const char* kind) {
    if (depth_ == 1) note(kind);
    if (depth_ > 0 && !is_text_) return true;
    problem_ = depth_ == 0 ? fmt::format("found {}", kind) : fmt::format("found {} in the field", kind);
    return false;
  }
  // Lists the fields of the line, for the message.
  void note(const char* kind) {
    if (!key_.empty() && fields_.size() < kMaxNoted)
      fields_.push_back(fmt::format("{} ({})", in_quotes(key_, 40), kind));
    if (fields_.size() == kMaxNoted) fields_.back() = "more";
    key_.clear();
  }
  // `on_path`: the object contains the document, as far as its name tells.
  bool enter(bool on_path) {
    ++depth_;
    if (on_path) path_ = depth_;
    is_text_ = is_next_ = false;
    return true;
  }
  bool leave() {
    if (path_ == depth_) --path_;
    --depth_;
    is_text_ = is_next_ = false;
    return true;
  }

  std::string_view field_;
  std::vector<std::string_view> names_;
  bool lists_fields_;
  std::size_t depth_ = 0;
  std::size_t path_ = 0;  // depth up to which the enclosing objects lead to the document
  bool is_next_ = false;  // the next value leads to the document
  bool is_text_ = false;  // the next value is the document
  bool found_ = false;
  std::string text_, problem_, key_;
  std::vector<std::string> fields_;
};

[[noreturn]] void fail_line(std::string_view line, const JsonLines& lines, uint64_t number) {
  TextField field(lines.field, true);
  Json::sax_parse(line.begin(), line.end(), &field);
  throw Error("[data] {}:{}: expected a JSON object with a string field \"{}\", {}", lines.file, number, lines.field,
              field.problem());
}

void visit_line(std::string_view line, const JsonLines& lines, uint64_t number, const DocumentVisitor& visit) {
  TextField field(lines.field, false);
  if (!Json::sax_parse(line.begin(), line.end(), &field) || !field.found()) fail_line(line, lines, number);
  visit(field.text());
}

}  // namespace

void for_each_json_line(const JsonLines& lines, const DocumentVisitor& visit) {
  uint64_t number = lines.lines_before;
  for (std::string_view content = lines.content; !content.empty();) {
    const std::size_t length = std::min(content.find('\n'), content.size());
    const std::string_view line = content.substr(0, length);
    content.remove_prefix(std::min(length + 1, content.size()));
    ++number;
    if (line.find_first_not_of(" \t\r") != std::string_view::npos) visit_line(line, lines, number, visit);
  }
}

}  // namespace quern::data
