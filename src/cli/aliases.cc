#include "cli/aliases.h"

#include <algorithm>

namespace quern::cli {
namespace {

struct Alias {
  std::string_view flag, other;
};

// Only what is typed without thinking; for the rest there are suggestions (suggest.h).
constexpr Alias kAliases[] = {
    {"--rate", "--lr"},
    {"--rate", "--learning-rate"},
    {"--batch", "--batch-size"},
    {"--vocabulary", "--vocab-size"},
    {"--temperature", "--temp"},
    {"--tokens", "--max-new-tokens"},
    {"--samples", "--num-samples"},
};

std::string with_underscores(std::string_view flag) {
  std::string name(flag);
  std::replace(name.begin() + 2, name.end(), '-', '_');
  return name;
}

}  // namespace

std::vector<std::string> aliases_of(std::string_view flag) {
  std::vector<std::string> others;
  for (const Alias& alias : kAliases) {
    if (alias.flag == flag) others.emplace_back(alias.other);
  }
  return others;
}

std::vector<std::string> names_of(std::string_view flag) {
  std::vector<std::string> names = aliases_of(flag);
  names.insert(names.begin(), std::string(flag));
  for (size_t i = 0, n = names.size(); i < n; ++i) {
    const std::string other = with_underscores(names[i]);
    if (other != names[i]) names.push_back(other);
  }
  return names;
}

}  // namespace quern::cli
