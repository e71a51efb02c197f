// Reads lines of JSON that differ only in their numbers at several hundred MB/s.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace quern::dashboard {

// A value of a line: a number, null (NaN), or true (1) or false (0).
struct LineValue {
  double number = 0;
  bool whole = false;  // digits only, so that `digits` is exact
  uint64_t digits = 0;
};

// Parses a number as JSON defines it, null, true or false at `*text`, and moves `*text` behind it. Returns whether
// there is one. The relative error of a number is at most 1e-15; magnitudes below those of a double become 0, and those
// above are refused, as the parser does.
bool read_value(const char*& text, const char* end, LineValue& value) noexcept;

// The text of a line around its values: {"step":*,"loss":*}.
//
// metrics.jsonl consists of a handful of such shapes, so a line is compared with the ones seen before, byte by byte,
// and only its numbers are parsed. A line of another shape takes the slow way once, through the JSON parser, which
// proves that the shape is JSON.
class LineShape {
 public:
  // The shape of a line that is a JSON object; nullopt if a value is a string or in an array, which then are the slow
  // way's. `paths` becomes the names that lead to each value, outermost first; they borrow from `line`, and are as
  // written there: with escapes.
  static std::optional<LineShape> of(std::string_view line, std::vector<std::vector<std::string_view>>& paths);

  size_t size() const { return ends_.size(); }
  // Whether the line has this shape; `values` must have size() elements and is unspecified if not.
  bool read(std::string_view line, std::span<LineValue> values) const noexcept;

 private:
  std::string text_;          // what surrounds the values, joined
  std::vector<size_t> ends_;  // in `text_`: where value i comes
};

}  // namespace quern::dashboard
