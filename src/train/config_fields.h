// The one table of config fields.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "train/config.h"

namespace quern::train {

// How each kind of field is reached and what it may be. Limits are included in the range.
struct WholeField {
  uint64_t& (*of)(RunConfig&);
  uint64_t min;
  uint64_t max;  // a value from 2^63 on, where TOML's integers end, is written as text: "9223372036854775808"
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
// Text of a form of its own.
struct TextField {
  std::string (*get)(const RunConfig&);
  bool (*set)(RunConfig&, std::string_view);  // false, and nothing changed: not of that form
  std::string_view form;                      // for people
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

// In the order in which they are printed; those of a table stand together.
std::span<const Field> fields();

// Its value as TOML.
std::string value_text(const Field& field, const RunConfig& config);

// "1 to 1000", "cosine, linear or constant"; empty for lists.
std::string allowed_values(const Field& field);

}  // namespace quern::train
