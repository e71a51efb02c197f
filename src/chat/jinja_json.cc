// json.dumps() of Python.
#include <algorithm>
#include <cmath>
#include <vector>

#include "chat/jinja_operators.h"
#include "chat/jinja_print.h"
#include "data/unicode_classes.h"

namespace quern::chat {
namespace {

// The number of bytes at the start that need no look at: almost all of most texts.
size_t plain_ascii(std::string_view text) {
  const auto* end =
      std::find_if(text.begin(), text.end(), [](char c) { return c < 0x20 || c == 0x7F || c == '"' || c == '\\'; });
  return static_cast<size_t>(end - text.begin());
}

class JsonPrinter {
 public:
  JsonPrinter(Budget& budget, const JsonStyle& style) : budget_(budget), style_(style) {}

  void print(const Value& value) {
    budget_.step();
    if (const Text* text = value.text()) {
      print_text(text->bytes);
    } else if (value.sequence() && value.sequence()->kind <= SequenceKind::kTuple) {
      print_items(value.sequence()->items);
    } else if (const Dict* dict = value.dict()) {
      print_entries(*dict);
    } else {
      append(scalar(value));
    }
  }

  std::string take() { return std::move(text_); }

 private:
  void append(std::string_view text) {
    budget_.allocate(text.size());
    text_ += text;
  }

  std::string scalar(const Value& value) {
    if (value.is_none()) return "null";
    if (value.is_bool()) return is_true(value) ? "true" : "false";
    if (!value.number()) budget_.fail("a value of type '{}' cannot be written as JSON", value.type());
    const double number = *value.number();
    if (std::isnan(number)) return "NaN";
    if (std::isinf(number)) return number > 0 ? "Infinity" : "-Infinity";
    return to_text(budget_, value);
  }

  void print_text(std::string_view text) {
    budget_.allocate(text.size());
    text_ += '"';
    for (size_t at = 0; at < text.size();) {
      const size_t plain = plain_ascii(text.substr(at));
      text_ += text.substr(at, plain);
      at += plain;
      if (at == text.size()) break;
      const data::DecodedCharacter next = data::decode_valid(text.data() + at);
      print_character(next.value, text.substr(at, next.length));
      at += next.length;
    }
    text_ += '"';
  }

  void print_character(uint32_t c, std::string_view bytes) {
    constexpr std::string_view kEscaped = "\"\\\b\f\n\r\t";
    constexpr std::string_view kNames = "\"\\bfnrt";
    const size_t found = c < 0x80 ? kEscaped.find(static_cast<char>(c)) : std::string_view::npos;
    if (found != std::string_view::npos) {
      text_ += '\\';
      text_ += kNames[found];
    } else if (c < 0x20 || (style_.ascii_only && c > 0x7E)) {
      print_escape(c);
    } else {
      text_ += bytes;
    }
  }

  void print_escape(uint32_t c) {
    if (c < 0x10000) {
      text_ += fmt::format("\\u{:04x}", c);
    } else {
      text_ += fmt::format("\\u{:04x}\\u{:04x}", 0xD7C0 + (c >> 10), 0xDC00 + (c & 0x3FF));
    }
  }

  void new_line() {
    if (!style_.is_indented) return;
    append("\n");
    for (size_t i = 0; i < level_; ++i) append(style_.indent);
  }

  template <typename PrintItem>
  void print_block(char open, char close, size_t count, PrintItem print_item) {
    append(std::string_view(&open, 1));
    ++level_;
    for (size_t i = 0; i < count; ++i) {
      if (i > 0) append(style_.item_separator);
      new_line();
      print_item(i);
    }
    --level_;
    if (count > 0) new_line();
    append(std::string_view(&close, 1));
  }

  void print_items(const Values& items) {
    print_block('[', ']', items.size(), [&](size_t i) { print(items[i]); });
  }

  void print_entries(const Dict& dict) {
    std::vector<const std::pair<Value, Value>*> entries;
    for (const auto& entry : dict.entries()) entries.push_back(&entry);
    if (style_.sort_keys) {
      std::stable_sort(entries.begin(), entries.end(),
                       [this](const auto* a, const auto* b) { return is_less(budget_, a->first, b->first); });
    }
    print_block('{', '}', entries.size(), [&](size_t i) {
      print_key(entries[i]->first);
      append(style_.key_separator);
      print(entries[i]->second);
    });
  }

  void print_key(const Value& key) {
    if (key.text()) return print_text(key.text()->bytes);
    append("\"");
    append(scalar(key));
    append("\"");
  }

  Budget& budget_;
  const JsonStyle& style_;
  std::string text_;
  size_t level_ = 0;
};

}  // namespace

std::string to_json(Budget& budget, const Value& value, const JsonStyle& style) {
  JsonPrinter printer(budget, style);
  printer.print(value);
  return printer.take();
}

}  // namespace quern::chat
