#include "formats/hf_fields.h"

#include <fmt/format.h>

#include <utility>

#include "core/error.h"
#include "core/text.h"

namespace quern::formats {
namespace {

// Text in quotes, everything else as JSON.
std::string shown(const nlohmann::json& value) {
  constexpr size_t kMost = 40;
  if (value.is_string()) return in_quotes(value.get_ref<const std::string&>(), kMost);
  const std::string text = json_text(value);
  return text.size() <= kMost ? text : in_quotes(text, kMost);
}

}  // namespace

HfFields::HfFields(const nlohmann::json& json, std::string where, std::string parent)
    : fields_(json, fmt::format("[import] {}", where), parent), where_(std::move(where)), parent_(std::move(parent)) {}

size_t HfFields::size(const std::string& key, size_t max) const {
  const uint64_t value = fields_.whole(key, max);
  if (value == 0) fields_.fail(key, fmt::format("1 to {}", max));
  return static_cast<size_t>(value);
}

bool HfFields::flag_or(const std::string& key, bool absent) const {
  if (!has(key)) return absent;
  if (!fields_.at(key).is_boolean()) fields_.fail(key, "true or false");
  return fields_.at(key).get<bool>();
}

void HfFields::expect_flag(const std::string& key, bool supported) const {
  if (flag_or(key, supported) != supported) refuse(key, supported ? "true" : "false");
}

void HfFields::expect_absent(const std::string& key) const {
  if (has(key)) refuse(key, "none");
}

void HfFields::expect_empty(const std::string& key) const {
  if (has(key) && !(fields_.at(key).is_structured() && fields_.at(key).empty())) refuse(key, "none");
}

void HfFields::refuse(const std::string& key, std::string_view supported) const {
  throw Error("[import] {}: {}{}: expected {}, found {}, which is not supported", where_, parent_, key, supported,
              shown(fields_.at(key)));
}

}  // namespace quern::formats
