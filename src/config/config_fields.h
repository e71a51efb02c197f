// The table of all config fields.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "config/config.h"

namespace quern::train {

// Kinds of fields, with accessors and allowed values. Ranges include their limits.
struct WholeField {
  uint64_t& (*of)(RunConfig&);
  uint64_t min;
  uint64_t max;  // values of 2^63 and above, beyond TOML integers, are written as text: "9223372036854775808"
};
struct RealField {
  double& (*of)(RunConfig&);
  double min;
  double max;
};
struct FlagField {
  bool& (*of)(RunConfig&);
};
struct ChoiceField {
  size_t (*get)(const RunConfig&);
  void (*set)(RunConfig&, size_t);
  std::span<const std::string_view> names;
};
// Text with its own syntax.
struct TextField {
  std::string (*get)(const RunConfig&);
  bool (*set)(RunConfig&, std::string_view);     // returns false and changes nothing if the syntax is wrong
  std::string_view form;                         // describes the syntax in messages
  std::span<const std::string_view> words = {};  // words with a meaning of their own, to suggest
};
struct ListField {
  std::vector<std::string>& (*of)(RunConfig&);
};

struct Field {
  std::string_view table;
  std::string_view name;
  std::string_view doc;
  std::variant<WholeField, RealField, FlagField, ChoiceField, TextField, ListField> kind;

  std::string path() const { return std::string(table) + "." + std::string(name); }
};

// All fields in the order in which they are printed, grouped by table.
std::span<const Field> fields();

// The value of a field as TOML.
std::string value_text(const Field& field, const RunConfig& config);

// The words that the field allows, for suggestions: empty for numbers and lists.
std::span<const std::string_view> words_of(const Field& field);

// "cosine, linear or constant".
std::string join_choices(std::span<const std::string_view> names);

// "1 to 1000", "cosine, linear or constant"; empty for lists.
std::string allowed_values(const Field& field);

}  // namespace quern::train
