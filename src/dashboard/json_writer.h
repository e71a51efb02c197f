// Writes JSON text from front to back: a view has up to a hundred thousand numbers, for which a tree would take several
// times the memory and time.
#pragma once

#include <charconv>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/json.h"

namespace quern::dashboard {

class JsonWriter {
 public:
  void open(char bracket) { value_begins(), text_ += bracket, first_ = true; }
  void close(char bracket) { text_ += bracket, first_ = false; }
  void key(std::string_view name) {
    value_begins();
    append_string(name);
    text_ += ':';
    first_ = true;  // no comma before the value
  }

  void string(std::string_view text) { value_begins(), append_string(text); }
  void boolean(bool value) { value_begins(), text_ += value ? "true" : "false"; }
  void null() { value_begins(), text_ += "null"; }
  void number(uint64_t value) { value_begins(), append(value); }
  void number(double value) { finite(value); }
  void number(float value) { finite(value); }
  // Four significant digits, for a color.
  void rough(float value) {
    if (!std::isfinite(value)) return null();
    value_begins();
    char digits[32];
    const auto end = std::to_chars(digits, digits + sizeof(digits), value, std::chars_format::general, 4).ptr;
    text_.append(digits, end);
  }
  void json(const nlohmann::ordered_json& value) { value_begins(), text_ += json_text(value); }

  std::string take() { return std::move(text_); }
  size_t size() const { return text_.size(); }

 private:
  void value_begins() {
    if (!first_) text_ += ',';
    first_ = false;
  }
  template <typename T>
  void append(T value) {
    char digits[32];
    text_.append(digits, std::to_chars(digits, digits + sizeof(digits), value).ptr);
  }
  template <typename T>
  void finite(T value) {
    if (!std::isfinite(value)) return null();
    value_begins();
    append(value);
  }
  void append_string(std::string_view text) { text_ += json_text(nlohmann::json(std::string(text))); }

  std::string text_;
  bool first_ = true;
};

}  // namespace quern::dashboard
