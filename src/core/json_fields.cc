#include "core/json_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "core/error.h"
#include "core/text.h"

namespace quern {

using Json = nlohmann::json;

JsonFields::JsonFields(const Json& object, std::string source, std::string parent)
    : object_(&object), source_(std::move(source)), parent_(std::move(parent)) {
  if (!object.is_object()) fail("", "an object", object);
}

const Json& JsonFields::at(const std::string& key) const {
  if (!contains(key)) throw Error("{}: {}{}: expected this field, found none", source_, parent_, printable(key));
  return (*object_)[key];
}

JsonFields JsonFields::object(const std::string& key) const {
  return {at(key), source_, parent_ + printable(key) + "."};
}

uint64_t JsonFields::whole(const std::string& key, uint64_t max) const {
  if (!at(key).is_number_unsigned()) fail(key, "a whole number from 0");
  if (at(key).get<uint64_t>() > max) fail(key, fmt::format("at most {}", max));
  return at(key).get<uint64_t>();
}

double JsonFields::real(const std::string& key, double min, double max) const {
  if (!at(key).is_number()) fail(key, "a number");
  const auto found = at(key).get<double>();
  if (!(found >= min && found <= max)) fail(key, fmt::format("a number from {} to {}", min, max));
  return found;
}

std::string JsonFields::text(const std::string& key) const {
  if (!at(key).is_string()) fail(key, "text");
  return at(key).get<std::string>();
}

std::string JsonFields::choice(const std::string& key, std::span<const std::string_view> allowed) const {
  std::string found = text(key);
  if (std::find(allowed.begin(), allowed.end(), found) == allowed.end()) {
    fail(key, fmt::format("{}", fmt::join(allowed, ", ")));
  }
  return found;
}

uint64_t JsonFields::hexadecimal(const std::string& key) const {
  const std::string digits = text(key);
  uint64_t value = 0;
  const auto [stop, code] = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
  if (digits.size() != 16 || stop != digits.data() + digits.size()) fail(key, "16 hexadecimal digits");
  return value;
}

void JsonFields::fail(const std::string& key, std::string_view expected) const { fail(key, expected, at(key)); }

void JsonFields::fail(const std::string& key, std::string_view expected, const Json& found) const {
  std::string path = parent_ + printable(key);
  if (path.ends_with('.')) path.pop_back();  // the object itself
  throw Error("{}: {}: expected {}, found {}", source_, path, expected, in_quotes(json_text(found), 40));
}

}  // namespace quern
