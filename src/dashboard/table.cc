#include "dashboard/table.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace quern::dashboard {
namespace {

// A row without a value of this column: a NaN that no value is, since every other becomes the usual one.
constexpr uint32_t kAbsentBits = 0x7fc0dead;
const float kAbsent = std::bit_cast<float>(kAbsentBits);

bool is_absent(float value) { return std::bit_cast<uint32_t>(value) == kAbsentBits; }

float without_payload(float value) { return std::isfinite(value) ? value : std::numeric_limits<float>::quiet_NaN(); }

// The sum of what a point stands for.
struct Sum {
  double sum = 0;
  uint64_t finite = 0, present = 0;
  float low = std::numeric_limits<float>::infinity(), high = -std::numeric_limits<float>::infinity();

  // `lines`: how many the value is the mean of.
  void add(float value, float least, float most, uint64_t lines) {
    if (is_absent(value)) return;
    ++present;
    if (std::isnan(value)) return;
    finite += lines;
    sum += static_cast<double>(value) * static_cast<double>(lines);
    low = std::min(low, least);
    high = std::max(high, most);
  }
  float mean() const {
    if (finite == 0) return present == 0 ? kAbsent : std::numeric_limits<float>::quiet_NaN();
    return static_cast<float>(sum / static_cast<double>(finite));
  }
  float least() const { return finite == 0 ? mean() : low; }
  float most() const { return finite == 0 ? mean() : high; }
};

}  // namespace

size_t Table::column(std::string_view name) {
  for (size_t i = 0; i < columns_.size(); ++i) {
    if (columns_[i].name == name) return i;
  }
  Column& added = columns_.emplace_back();
  added.name = name;
  added.value.assign(rows(), kAbsent);
  if (lines_per_row_ > 1) added.low = added.high = added.value;
  return columns_.size() - 1;
}

void Table::begin_row(uint64_t step, float seconds) {
  if (!steps_.empty() && step <= steps_.back()) drop_from(step);
  const bool joins = !steps_.empty() && lines_in_last_ < lines_per_row_;
  if (joins) {
    ++lines_in_last_;
    steps_.back() = step;
    seconds_.back() = seconds;
    return;
  }
  if (rows() == kMaxRows) halve();
  steps_.push_back(step);
  seconds_.push_back(seconds);
  lines_in_last_ = 1;
  for (Column& column : columns_) {
    column.value.push_back(kAbsent);
    if (lines_per_row_ == 1) continue;
    column.low.push_back(kAbsent);
    column.high.push_back(kAbsent);
  }
}

void Table::set(size_t index, float value) {
  Column& column = columns_[index];
  value = without_payload(value);
  ++column.count;
  float& stored = column.value.back();
  const bool first = is_absent(stored) || std::isnan(stored);
  if (first) stored = value;
  if (lines_per_row_ == 1) {
    stored = value;
    return;
  }
  float &low = column.low.back(), &high = column.high.back();
  if (first) {
    low = high = value;
  } else if (!std::isnan(value)) {
    stored += (value - stored) / static_cast<float>(lines_in_last_);
    low = std::min(low, value);
    high = std::max(high, value);
  }
}

void Table::drop_from(uint64_t step) {
  const auto begin = std::lower_bound(steps_.begin(), steps_.end(), step);
  const auto left = static_cast<size_t>(begin - steps_.begin());
  steps_.resize(left);
  seconds_.resize(left);
  for (Column& column : columns_) {
    const auto dropped = std::count_if(column.value.begin() + static_cast<ptrdiff_t>(left), column.value.end(),
                                       [](float value) { return !is_absent(value); });
    column.count -= std::min(column.count, static_cast<uint64_t>(dropped) * lines_per_row_);
    column.value.resize(left);
    column.low.resize(std::min(column.low.size(), left));
    column.high.resize(std::min(column.high.size(), left));
  }
  lines_in_last_ = lines_per_row_;
}

// kMaxRows is even, and the last row is complete.
void Table::halve() {
  const size_t half = rows() / 2;
  for (Column& column : columns_) merge_column(column);
  for (size_t i = 0; i < half; ++i) {
    steps_[i] = steps_[2 * i + 1];
    seconds_[i] = seconds_[2 * i + 1];
  }
  steps_.resize(half);
  seconds_.resize(half);
  lines_per_row_ *= 2;
  lines_in_last_ = lines_per_row_;
}

void Table::merge_column(Column& column) {
  if (lines_per_row_ == 1) column.low = column.high = column.value;
  const size_t half = rows() / 2;
  for (size_t i = 0; i < half; ++i) {
    Sum sum;
    for (const size_t row : {2 * i, 2 * i + 1}) sum.add(column.value[row], column.low[row], column.high[row], 1);
    column.value[i] = sum.mean();
    column.low[i] = sum.least();
    column.high[i] = sum.most();
  }
  for (std::vector<float>* values : {&column.value, &column.low, &column.high}) values->resize(half);
}

std::optional<Table::Found> Table::last(size_t index) const {
  const std::vector<float>& values = columns_[index].value;
  for (size_t row = values.size(); row-- > 0;) {
    if (!is_absent(values[row])) return Found{steps_[row], values[row]};
  }
  return std::nullopt;
}

std::optional<Table::Found> Table::best(size_t index, bool lowest) const {
  const Column& column = columns_[index];
  const std::vector<float>& values = lines_per_row_ == 1 ? column.value : lowest ? column.low : column.high;
  std::optional<Found> best;
  for (size_t row = 0; row < values.size(); ++row) {
    if (std::isnan(values[row])) continue;
    if (!best || (lowest ? values[row] < best->value : values[row] > best->value)) {
      best = Found{steps_[row], values[row]};
    }
  }
  return best;
}

double Table::seconds_per_step() const {
  constexpr size_t kRecent = 50;
  if (rows() < 2)
    return rows() == 1 && steps_[0] > 0 ? static_cast<double>(seconds_[0]) / static_cast<double>(steps_[0]) : 0;
  const size_t first = rows() > kRecent ? rows() - kRecent : 0, last = rows() - 1;
  const double seconds = static_cast<double>(seconds_[last]) - static_cast<double>(seconds_[first]);
  return std::max(0.0, seconds) / static_cast<double>(steps_[last] - steps_[first]);
}

// The first row at `x` or, with `after`, beyond it.
size_t Table::row_at(const Extent& extent, double x, bool after) const {
  const auto position = [&](const auto& values) {
    const auto found = std::partition_point(values.begin(), values.end(), [&](auto value) {
      return after ? static_cast<double>(value) <= x : static_cast<double>(value) < x;
    });
    return static_cast<size_t>(found - values.begin());
  };
  return extent.by_seconds ? position(seconds_) : position(steps_);
}

Point Table::point(const Column& column, size_t first, size_t last) const {
  const bool merged = lines_per_row_ > 1;
  Sum sum;
  for (size_t row = first; row <= last; ++row) {
    const float value = column.value[row];
    sum.add(value, merged ? column.low[row] : value, merged ? column.high[row] : value,
            row + 1 == rows() ? lines_in_last_ : lines_per_row_);
  }
  return {steps_[last], seconds_[last], sum.mean(), sum.least(), sum.most()};
}

Table::Curve Table::curve(size_t index, const Extent& extent, size_t max_points) const {
  const Column& column = columns_[index];
  const size_t begin = row_at(extent, extent.from, false), end = row_at(extent, extent.to, true);
  Curve curve;
  if (begin >= end) return curve;
  const size_t wanted = std::max<size_t>(1, max_points);
  const size_t group = std::bit_ceil((end - begin + wanted - 1) / wanted);
  curve.decimated = group > 1 || lines_per_row_ > 1;
  curve.points.reserve((end - begin) / group + 2);
  for (size_t first = begin; first < end;) {
    const size_t last = std::min(end, (first / group + 1) * group) - 1;
    const Point found = point(column, first, last);
    if (!is_absent(found.value)) curve.points.push_back(found);
    first = last + 1;
  }
  return curve;
}

}  // namespace quern::dashboard
