#include "data/tokenizer_json_node.h"

#include "core/error.h"
#include "core/json.h"
#include "data/utf8.h"

namespace quern::data {
namespace {

const JsonNode::Json kNull;

std::string described(const JsonNode::Json& value) {
  if (value.is_string()) return in_quotes(value.get_ref<const std::string&>());
  if (value.is_object() || value.is_array()) return std::string("an ") + value.type_name();
  return value.is_null() ? "nothing" : json_text(value);
}

}  // namespace

void JsonNode::expected(std::string_view what) const {
  throw Error("[tokenizer] {}: expected {}, found {}", where_, what, described(value_));
}

JsonNode JsonNode::operator[](const char* name) const {
  const auto found = object().find(name);
  return {found == value_.end() ? kNull : *found, fmt::format("{}: {}", where_, name)};
}

JsonNode JsonNode::at(size_t i) const { return {value_[i], fmt::format("{}[{}]", where_, i)}; }

JsonNode JsonNode::at(const std::string& key) const {
  return {value_[key], fmt::format("{}[{}]", where_, in_quotes(key))};
}

const JsonNode::Json& JsonNode::object() const {
  if (!value_.is_object()) expected("an object");
  return value_;
}

size_t JsonNode::size() const {
  if (!value_.is_array() && !value_.is_null()) expected("an array");
  return value_.size();
}

const std::string& JsonNode::string() const {
  if (!value_.is_string()) expected("a string");
  return value_.get_ref<const std::string&>();
}

int32_t JsonNode::id() const {
  if (!value_.is_number_unsigned() || value_.get<uint64_t>() > INT32_MAX) expected("an id, a whole number below 2^31");
  return static_cast<int32_t>(value_.get<uint64_t>());
}

bool JsonNode::boolean(bool otherwise) const {
  if (is_null()) return otherwise;
  if (!value_.is_boolean()) expected("true or false");
  return value_.get<bool>();
}

void JsonNode::must_be_false(std::string_view why) const {
  if (boolean(false)) throw Error("[tokenizer] {}: expected false, found true; {}", where_, why);
}

std::string JsonNode::type_name() const { return is_null() ? "nothing" : in_quotes((*this)["type"].string()); }

}  // namespace quern::data
