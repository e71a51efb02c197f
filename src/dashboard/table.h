// Logged numbers by step, in bounded memory, and curves of a limited number of points.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace quern::dashboard {

// A point of a curve: one logged value, or several in a row.
struct Point {
  uint64_t step = 0;                   // of the last of them
  float seconds = 0;                   // of training up to there
  float value = 0, low = 0, high = 0;  // mean, minimum and maximum; NaN if none of them is finite
};

// A range of what a curve is drawn over, limits included. Both are steps, or seconds.
struct Extent {
  bool by_seconds = false;
  double from = -1e300, to = 1e300;
};

// The numbers of one kind of line, such as those of a step: a row for each line, a column for each field. Rows are in
// ascending order of their steps.
//
// A table has at most kMaxRows rows. When it is full, every two rows become one with the mean, minimum and maximum of
// both; so a column takes at most 3 MB, and a run of a million lines still has a row for every 4 of them.
class Table {
 public:
  static constexpr size_t kMaxRows = size_t{1} << 18;

  // Adds a column, or returns that of this name.
  size_t column(std::string_view name);
  size_t columns() const { return columns_.size(); }
  const std::string& name(size_t column) const { return columns_[column].name; }

  // Begins the row of a line. Rows of this step and later ones are dropped: the newest line counts.
  void begin_row(uint64_t step, float seconds);
  // A value of that row. NaN: logged, but not finite.
  void set(size_t column, float value);

  size_t rows() const { return steps_.size(); }
  uint64_t last_step() const { return steps_.empty() ? 0 : steps_.back(); }
  // Lines that had a value of this column.
  uint64_t count(size_t column) const { return columns_[column].count; }
  // The newest value, and the smallest or largest finite one with its step.
  struct Found {
    uint64_t step;
    float value;
  };
  std::optional<Found> last(size_t column) const;
  std::optional<Found> best(size_t column, bool lowest) const;

  // Seconds of training per step in the last rows; 0 if unknown.
  double seconds_per_step() const;

  // The curve of a column within an extent, at most about `max_points` points, which do not move when rows are added:
  // each stands for 2^k rows that begin at a multiple of 2^k.
  struct Curve {
    std::vector<Point> points;
    bool decimated = false;  // a point may stand for several values
  };
  Curve curve(size_t column, const Extent& extent, size_t max_points) const;

 private:
  struct Column {
    std::string name;
    std::vector<float> value;
    std::vector<float> low, high;  // empty as long as each row is one line
    uint64_t count = 0;
  };
  void drop_from(uint64_t step);
  void halve();
  void merge_column(Column& column);
  size_t row_at(const Extent& extent, double x, bool after) const;
  Point point(const Column& column, size_t first, size_t last) const;

  std::vector<Column> columns_;
  std::vector<uint64_t> steps_;
  std::vector<float> seconds_;
  uint64_t lines_per_row_ = 1, lines_in_last_ = 1;
};

}  // namespace quern::dashboard
