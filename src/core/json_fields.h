// Checked access to the fields of a JSON object in a file that cannot be trusted.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "core/json.h"

namespace quern {

// Every function throws an Error with the file and the field if that is missing, has another type or is out of range.
class JsonFields {
 public:
  // `source` starts messages: "[checkpoint] runs/a/state.json". `parent` is the path of an inner object, with a dot at
  // its end. `object` must outlive this object.
  JsonFields(const nlohmann::json& object, std::string source, std::string parent = "");

  bool contains(const std::string& key) const { return object_->contains(key); }
  const nlohmann::json& at(const std::string& key) const;
  JsonFields object(const std::string& key) const;

  uint64_t whole(const std::string& key, uint64_t max) const;
  double real(const std::string& key, double min, double max) const;
  std::string text(const std::string& key) const;
  std::string choice(const std::string& key, std::span<const std::string_view> allowed) const;
  uint64_t hexadecimal(const std::string& key) const;  // 16 digits

  [[noreturn]] void fail(const std::string& key, std::string_view expected) const;

 private:
  [[noreturn]] void fail(const std::string& key, std::string_view expected, const nlohmann::json& found) const;

  const nlohmann::json* object_;
  std::string source_, parent_;
};

}  // namespace quern
