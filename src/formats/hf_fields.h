// The fields of a JSON object of Hugging Face's libraries: a field that is null counts as absent.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "core/json_fields.h"

namespace quern::formats {

// Every function throws an Error with the file and the field if its value has another type or is out of range.
class HfFields {
 public:
  // `where` is the file; `parent` the path of an inner object, with a dot at its end. `json` must outlive this object.
  HfFields(const nlohmann::json& json, std::string where, std::string parent = "");

  bool has(const std::string& key) const { return fields_.contains(key) && !fields_.at(key).is_null(); }
  const nlohmann::json& at(const std::string& key) const { return fields_.at(key); }
  std::string text(const std::string& key, std::string absent) const { return has(key) ? fields_.text(key) : absent; }

  size_t size(const std::string& key, size_t max) const;  // 1 to max
  size_t size_or(const std::string& key, size_t max, size_t absent) const { return has(key) ? size(key, max) : absent; }

  double real(const std::string& key, double min, double max) const { return fields_.real(key, min, max); }
  double real_or(const std::string& key, double min, double max, double absent) const {
    return has(key) ? real(key, min, max) : absent;
  }
  bool flag_or(const std::string& key, bool absent) const;

  // An inner object that is there.
  HfFields object(const std::string& key) const { return {fields_.at(key), where_, parent_ + key + "."}; }

  void expect_flag(const std::string& key, bool supported) const;
  void expect_absent(const std::string& key) const;
  void expect_empty(const std::string& key) const;  // absent, or a list or an object without elements

  // The field's value is something that Quern does not have.
  [[noreturn]] void refuse(const std::string& key, std::string_view supported) const;

 private:
  JsonFields fields_;
  std::string where_, parent_;
};

}  // namespace quern::formats
