#include "replay/schema.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <unordered_set>
#include <utility>

#include "core/error.h"
#include "core/json.h"
#include "core/text.h"

namespace quern::replay {
namespace {

using Json = nlohmann::json;

constexpr std::array<std::pair<std::string_view, size_t>, 12> kDTypes = {{{"bool", 1},
                                                                          {"int8", 1},
                                                                          {"uint8", 1},
                                                                          {"int16", 2},
                                                                          {"uint16", 2},
                                                                          {"int32", 4},
                                                                          {"uint32", 4},
                                                                          {"int64", 8},
                                                                          {"uint64", 8},
                                                                          {"float16", 2},
                                                                          {"float32", 4},
                                                                          {"float64", 8}}};
constexpr std::array<std::string_view, 3> kEncodings = {"raw", "bits", "sparse"};

constexpr uint64_t kMaxElements = uint64_t{1} << 32;      // products of two still fit in 64 bits
constexpr uint64_t kMaxSparse = (uint64_t{1} << 32) - 1;  // a sparse row counts its values in 32 bits

constexpr size_t rounded_up(size_t bytes, size_t multiple) { return (bytes + multiple - 1) / multiple * multiple; }

// Error naming the column, unless every partial product of its shape is within the limit.
void check_shape(const Column& column) {
  if (column.shape.size() > kMaxDimensions) {
    throw Error("[replay] column {}: expected at most {} dimensions, found {}", in_quotes(column.name), kMaxDimensions,
                column.shape.size());
  }
  uint64_t elements = 1;
  for (const uint64_t extent : column.shape) {
    if (extent == 0) {
      throw Error("[replay] column {}: expected a shape without a zero, found ({})", in_quotes(column.name),
                  fmt::join(column.shape, ", "));
    }
    if (extent > kMaxElements || elements * extent > kMaxElements) {
      throw Error("[replay] column {}: expected at most {} elements per row, found shape ({})", in_quotes(column.name),
                  kMaxElements, fmt::join(column.shape, ", "));
    }
    elements *= extent;
  }
}

void check_encoding(const Column& column) {
  if (column.encoding != Encoding::kSparse) {
    if (column.max_nonzero == 0) return;
    throw Error("[replay] column {}: expected `max_nonzero` only with encoding 'sparse', found {} with '{}'",
                in_quotes(column.name), column.max_nonzero, name_of(column.encoding));
  }
  if (column.max_nonzero == 0 || column.max_nonzero > column.elements()) {
    throw Error("[replay] column {}: expected `max_nonzero` from 1 to {}, the elements of a row, found {}",
                in_quotes(column.name), column.elements(), column.max_nonzero);
  }
  if (column.max_nonzero > kMaxSparse) {
    throw Error("[replay] column {}: expected `max_nonzero` of at most {}, found {}; store it raw",
                in_quotes(column.name), kMaxSparse, column.max_nonzero);
  }
}

void check_name(const Column& column, std::unordered_set<std::string_view>& seen) {
  const bool zero = column.name.find('\0') != std::string::npos;  // terminates a name in much other software
  if (column.name.empty() || column.name.size() > kMaxName || !is_utf8(column.name) || zero) {
    throw Error("[replay] expected a column's name of 1 to {} bytes of UTF-8 without a zero byte, found {} of {} bytes",
                kMaxName, in_quotes(column.name), column.name.size());
  }
  if (!seen.insert(column.name).second) {
    throw Error("[replay] expected each column's name once, found {} twice", in_quotes(column.name));
  }
}

[[noreturn]] void bad_text(std::string_view expected, std::string_view found) {
  throw Error("[replay] schema: expected {}, found {}", expected, found);
}

const Json& member(const Json& object, const char* key, bool (Json::*is)() const noexcept, const char* kind) {
  const auto found = object.find(key);
  if (found == object.end()) bad_text(fmt::format("'{}' in each column", key), "none");
  if (!((*found).*is)()) bad_text(fmt::format("'{}' to be {}", key, kind), found->type_name());
  return *found;
}

std::vector<size_t> shape_from(const Json& extents) {
  std::vector<size_t> shape;
  for (const Json& extent : extents) {
    if (!extent.is_number_unsigned()) bad_text("whole numbers from 1 in 'shape'", extent.type_name());
    shape.push_back(extent.get<size_t>());
    if (shape.size() > kMaxDimensions) bad_text(fmt::format("at most {} dimensions", kMaxDimensions), "more");
  }
  return shape;
}

Column column_from(const Json& entry) {
  if (!entry.is_object()) bad_text("an object for each column", entry.type_name());
  Column column;
  column.name = member(entry, "name", &Json::is_string, "text").get<std::string>();
  column.dtype = dtype_named(member(entry, "dtype", &Json::is_string, "text").get_ref<const std::string&>());
  column.shape = shape_from(member(entry, "shape", &Json::is_array, "an array"));
  if (!entry.contains("encoding")) return column;
  column.encoding = encoding_named(member(entry, "encoding", &Json::is_string, "text").get_ref<const std::string&>());
  if (column.encoding == Encoding::kSparse) {
    column.max_nonzero = member(entry, "most", &Json::is_number_unsigned, "a whole number").get<size_t>();
  }
  return column;
}

}  // namespace

size_t size_of(DType dtype) noexcept { return kDTypes[static_cast<size_t>(dtype)].second; }

std::string_view name_of(DType dtype) noexcept { return kDTypes[static_cast<size_t>(dtype)].first; }

DType dtype_named(std::string_view name) {
  for (size_t i = 0; i < kDTypes.size(); ++i) {
    if (kDTypes[i].first == name) return static_cast<DType>(i);
  }
  throw Error(
      "[replay] expected a dtype of bool, int8, uint8, int16, uint16, int32, uint32, int64, uint64, float16, float32 "
      "or "
      "float64, found {}",
      in_quotes(name));
}

std::string_view name_of(Encoding encoding) noexcept { return kEncodings[static_cast<size_t>(encoding)]; }

Encoding encoding_named(std::string_view name) {
  for (size_t i = 0; i < kEncodings.size(); ++i) {
    if (kEncodings[i] == name) return static_cast<Encoding>(i);
  }
  throw Error("[replay] expected an encoding of raw, bits or sparse, found {}", in_quotes(name));
}

size_t Column::elements() const noexcept {
  size_t product = 1;
  for (const size_t extent : shape) product *= extent;
  return product;
}

size_t Column::value_bytes() const noexcept { return elements() * size_of(dtype); }

size_t Column::stored_bytes() const noexcept {
  switch (encoding) {
    case Encoding::kBits:
      return (elements() + 7) / 8;
    case Encoding::kSparse: {
      const size_t index_bytes = elements() <= 65536 ? sizeof(uint16_t) : sizeof(uint32_t);
      return rounded_up(sizeof(uint32_t) + max_nonzero * index_bytes, size_of(dtype)) + max_nonzero * size_of(dtype);
    }
    default:
      return value_bytes();
  }
}

std::string Column::description() const {
  std::string text = fmt::format("{} ({}{})", name_of(dtype), fmt::join(shape, ", "), shape.size() == 1 ? "," : "");
  if (encoding == Encoding::kBits) text += " as bits";
  if (encoding == Encoding::kSparse) text += fmt::format(" sparse, at most {}", max_nonzero);
  return text;
}

Schema::Schema(std::vector<Column> columns) : columns_(std::move(columns)) {
  if (columns_.empty() || columns_.size() > kMaxColumns) {
    throw Error("[replay] expected 1 to {} columns, found {}", kMaxColumns, columns_.size());
  }
  std::unordered_set<std::string_view> seen;
  for (const Column& column : columns_) {
    check_name(column, seen);
    check_shape(column);
    check_encoding(column);
  }
}

size_t Schema::index_of(std::string_view name) const {
  for (size_t i = 0; i < columns_.size(); ++i) {
    if (columns_[i].name == name) return i;
  }
  std::vector<std::string_view> names;
  for (const Column& column : columns_) names.push_back(column.name);
  throw Error("[replay] expected a column of {}, found {}", fmt::join(names, ", "), in_quotes(name));
}

size_t Schema::value_bytes() const noexcept {
  size_t sum = 0;
  for (const Column& column : columns_) sum += column.value_bytes();
  return sum;
}

size_t Schema::stored_bytes() const noexcept {
  size_t sum = 0;
  for (const Column& column : columns_) sum += column.stored_bytes();
  return sum;
}

std::string Schema::text() const {
  std::string text = R"({"columns":[)";
  for (const Column& column : columns_) {
    if (&column != columns_.data()) text += ',';
    text += fmt::format(R"({{"name":{},"dtype":"{}","shape":[{}])", json_text(Json(column.name)), name_of(column.dtype),
                        fmt::join(column.shape, ","));
    if (column.encoding != Encoding::kRaw) text += fmt::format(R"(,"encoding":"{}")", name_of(column.encoding));
    if (column.encoding == Encoding::kSparse) text += fmt::format(R"(,"most":{})", column.max_nonzero);
    text += '}';
  }
  return text + "]}";
}

Schema Schema::from_text(std::string_view text) {
  if (text.size() > kMaxSchemaText) {
    bad_text(fmt::format("at most {} bytes", kMaxSchemaText), fmt::format("{}", text.size()));
  }
  const Json json = parse_json(text);
  if (json.is_discarded() || !json.is_object()) bad_text("a JSON object", in_quotes(text));
  const auto entries = json.find("columns");
  if (entries == json.end() || !entries->is_array()) bad_text("an array of 'columns'", in_quotes(text));
  std::vector<Column> columns;
  for (const Json& entry : *entries) {
    if (columns.size() > kMaxColumns) break;  // rejected below, without reading a million of them
    columns.push_back(column_from(entry));
  }
  return Schema(std::move(columns));
}

void Schema::expect_same(const Schema& found, std::string_view where) const {
  if (columns_.size() != found.columns_.size()) {
    throw Error("{}: expected {} columns, found {}", where, columns_.size(), found.columns_.size());
  }
  for (size_t i = 0; i < columns_.size(); ++i) {
    const Column& ours = columns_[i];
    const Column& theirs = found.columns_[i];
    if (ours == theirs) continue;
    throw Error("{}: column {}: expected {} {}, found {} {}", where, i, in_quotes(ours.name), ours.description(),
                in_quotes(theirs.name), theirs.description());
  }
}

}  // namespace quern::replay
