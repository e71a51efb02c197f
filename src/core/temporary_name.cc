#include "core/temporary_name.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <string>

#include "core/crc32c.h"

namespace quern {
namespace {

constexpr size_t kCheckLength = 9;  // -01234567

std::string check_of(std::string_view name) { return fmt::format("-{:08x}", crc32c(name)); }

bool is_number(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// Removes "-123" from the end of `text`; returns false if there is no such suffix.
bool take_number(std::string_view& text) {
  const size_t dash = text.rfind('-');
  if (dash == std::string_view::npos || !is_number(text.substr(dash + 1))) return false;
  text = text.substr(0, dash);
  return true;
}

// NAME; empty if `name` is not a temporary name.
std::string_view target_of(std::string_view name) {
  if (!name.starts_with(kTemporaryPrefix) || name.size() < kCheckLength) return {};
  std::string_view rest = name.substr(0, name.size() - kCheckLength);
  if (name.substr(rest.size()) != check_of(rest)) return {};
  if (!take_number(rest) || !take_number(rest) || rest.size() <= kTemporaryPrefix.size()) return {};
  return rest.substr(kTemporaryPrefix.size());
}

}  // namespace

std::filesystem::path temporary_beside(const std::filesystem::path& path) {
  static std::atomic<unsigned> count{0};
  const unsigned number = count.fetch_add(1, std::memory_order_relaxed);  // only has to be unique
  const std::string name =
      fmt::format("{}{}-{}-{}", kTemporaryPrefix, path.filename().native(), static_cast<long>(getpid()), number);
  return path.parent_path() / (name + check_of(name));
}

bool is_temporary_name(std::string_view name) { return !target_of(name).empty(); }

bool is_temporary_name_of(std::string_view name, std::string_view target) {
  return !target.empty() && target_of(name) == target;
}

}  // namespace quern
