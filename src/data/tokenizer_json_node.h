// A value of a tokenizer.json and its path, for messages.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace quern::data {

class JsonNode {
 public:
  using Json = nlohmann::json;

  // `value` must outlive the node and those taken from it.
  JsonNode(const Json& value, std::string where) : value_(value), where_(std::move(where)) {}

  const Json& value() const noexcept { return value_; }
  const std::string& where() const noexcept { return where_; }
  bool is_null() const noexcept { return value_.is_null(); }

  // Throws an Error that says what was found instead.
  [[noreturn]] void expected(std::string_view what) const;

  // The field of an object; a missing one reads as null. Error if this is not an object.
  JsonNode operator[](const char* name) const;
  // An element; i < size().
  JsonNode at(size_t i) const;
  // The field of an object, which must exist.
  JsonNode at(const std::string& key) const;

  // The value as a type; Error if it has another one.
  const Json& object() const;
  const std::string& string() const;
  int32_t id() const;
  bool boolean(bool otherwise) const;  // `otherwise` if it is null
  size_t size() const;                 // of an array; null counts as empty
  void must_be_false(std::string_view why) const;

  // The field `type` of an object, for messages "nothing" if this is null.
  std::string type_name() const;

 private:
  const Json& value_;
  std::string where_;
};

}  // namespace quern::data
