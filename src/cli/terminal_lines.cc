#include "cli/terminal_lines.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>

namespace quern::cli {

std::optional<std::string> read_line() {
  char* buffer = nullptr;
  size_t capacity = 0;
  const ssize_t length = ::getline(&buffer, &capacity, stdin);
  const std::unique_ptr<char, decltype(&std::free)> owner(buffer, &std::free);
  if (length < 0) return std::nullopt;
  std::string_view line(buffer, static_cast<size_t>(length));
  while (line.ends_with('\n') || line.ends_with('\r')) line.remove_suffix(1);
  return std::string(line);
}

std::string_view trimmed(std::string_view text) {
  const size_t first = std::min(text.find_first_not_of(" \t"), text.size());
  return text.substr(first, text.find_last_not_of(" \t") + 1 - first);
}

}  // namespace quern::cli
