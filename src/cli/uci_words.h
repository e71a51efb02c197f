// The words of a line, one after another.
#pragma once

#include <algorithm>
#include <optional>
#include <string_view>

namespace quern::cli {

class UciWords {
 public:
  explicit UciWords(std::string_view text) : rest_(text) {}

  std::optional<std::string_view> next() {
    const std::optional<std::string_view> word = peek();
    if (word) rest_.remove_prefix(word->size());
    return word;
  }

  std::optional<std::string_view> peek() {
    rest_.remove_prefix(std::min(rest_.find_first_not_of(kSpaces), rest_.size()));
    if (rest_.empty()) return std::nullopt;
    return rest_.substr(0, rest_.find_first_of(kSpaces));
  }

  std::string_view rest() const { return rest_; }

 private:
  static constexpr std::string_view kSpaces = " \t\r\n\v\f";

  std::string_view rest_;
};

}  // namespace quern::cli
