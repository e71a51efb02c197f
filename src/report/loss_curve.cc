#include "report/loss_curve.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <initializer_list>
#include <iterator>
#include <limits>
#include <string_view>

namespace quern::report {
namespace {

constexpr size_t kLabel = 9;  // columns left of the axis
constexpr std::string_view kTrainingColor = "\033[36m", kValidationColor = "\033[33m", kAlarmColor = "\033[31m",
                           kPlain = "\033[0m";

bool usable(double loss) { return std::abs(loss) < 1e300; }  // differences stay finite; false for NaN

struct Scale {
  double low = 0, high = 1;
};

// From the lowest loss up to the bulk of the points, the first point, and all points less than three times as far away.
// With ten points or fewer, the bulk includes the highest.
Scale scale_of(std::vector<double> losses) {
  const double first = losses.front();
  std::sort(losses.begin(), losses.end());
  const size_t last = losses.size() - 1;
  const double low = losses[0], bulk = std::max(first, losses[last - last / 10]);
  const double high = losses[last] <= low + 3 * (bulk - low) ? losses[last] : bulk;
  const double margin = high > low ? 0 : std::max(std::abs(low) * 0.1, 1e-3);
  return {low - margin, high + margin};
}

// Uses as many digits as fit.
std::string label(double loss) {
  for (int digits = 4; digits > 1; --digits) {
    std::string text = fmt::format("{:.{}g}", loss, digits);
    if (text.size() < kLabel) return text;
  }
  return fmt::format("{:.0e}", loss);
}

// Letters are runs: neighbours have different colors.
std::string_view color_of(char mark) {
  constexpr std::string_view kRunColors[] = {"\033[36m", "\033[33m", "\033[35m", "\033[32m", "\033[34m"};
  if (mark == 'o') return kValidationColor;
  if (mark == '*' || mark == '.') return kTrainingColor;
  if (mark == '^' || mark == 'x') return kAlarmColor;
  const bool upper = mark >= 'A' && mark <= 'Z';
  if (!upper && !(mark >= 'a' && mark <= 'z')) return {};
  return kRunColors[static_cast<size_t>(mark - (upper ? 'A' : 'a')) % std::size(kRunColors)];
}

class Canvas {
 public:
  Canvas(const CurveOptions& options, uint64_t first, uint64_t last, Scale scale)
      : columns_(std::max<size_t>(options.width, 40) - kLabel - 1),
        color_(options.color),
        first_(first),
        last_(last),
        scale_(scale),
        rows_(std::max<size_t>(options.height, 4), std::string(columns_, ' ')),
        axis_(columns_, '-') {}

  size_t columns() const { return columns_; }
  size_t column(uint64_t step) const {
    if (last_ == first_) return 0;
    const double share = static_cast<double>(step - first_) / static_cast<double>(last_ - first_);
    return static_cast<size_t>(std::lround(share * static_cast<double>(columns_ - 1)));
  }
  size_t row(double loss) const {
    const double share = std::clamp((scale_.high - loss) / (scale_.high - scale_.low), 0.0, 1.0);
    return static_cast<size_t>(std::lround(share * static_cast<double>(rows_.size() - 1)));
  }
  bool above(double loss) const { return loss > scale_.high; }

  void mark(size_t column, double loss, char mark) {
    if (above(loss)) {
      rows_[0][column] = '^';
    } else {
      rows_[row(loss)][column] = mark;
    }
  }
  char at(size_t column, double loss) const { return rows_[row(loss)][column]; }
  void mark_spread(size_t column, double min, double largest) {
    for (size_t r = row(largest); r <= row(min); ++r) rows_[r][column] = '.';
  }
  void mark_not_finite(size_t column) { axis_[column] = 'x'; }

  std::string text() const {
    std::string text;
    const size_t labels = rows_.size() / 4;
    for (size_t r = 0; r < rows_.size(); ++r) {
      const bool labelled = (r % labels == 0 && r + labels / 2 < rows_.size()) || r + 1 == rows_.size();
      const double share = static_cast<double>(r) / static_cast<double>(rows_.size() - 1);
      const double loss = scale_.high - share * (scale_.high - scale_.low);
      text += labelled ? fmt::format("{:>{}} |", label(loss), kLabel - 1) : std::string(kLabel, ' ') + "|";
      text += line(rows_[r]) + "\n";
    }
    text += std::string(kLabel, ' ') + "+" + line(axis_) + "\n";
    const std::string begin = fmt::format("{}step {}", std::string(kLabel + 1, ' '), first_);
    const std::string end = last_ == first_ ? "" : fmt::format(" {}", last_);
    return text + fmt::format("{}{:>{}}\n", begin, end, kLabel + 1 + columns_ - begin.size());
  }

 private:
  // Removes trailing blanks and adds colors.
  std::string line(const std::string& marks) const {
    const size_t length = marks.find_last_not_of(' ') + 1;  // 0 for npos
    if (!color_) return marks.substr(0, length);
    std::string text;
    for (size_t i = 0; i < length; ++i) {
      const char mark = marks[i];
      const std::string_view color = color_of(mark);
      if (color.empty()) {
        text += mark;
      } else {
        text += fmt::format("{}{}{}", color, mark, kPlain);
      }
    }
    return text;
  }

  size_t columns_;
  bool color_;
  uint64_t first_, last_;
  Scale scale_;
  std::vector<std::string> rows_;
  std::string axis_;
};

// The training losses in a column.
struct Column {
  double min = std::numeric_limits<double>::infinity(), largest = -min, sum = 0;
  double spike = -std::numeric_limits<double>::infinity();  // the highest above the scale
  size_t count = 0;
};

// The points of each column of the canvas. Marks those that are not finite.
std::vector<Column> columns_of(Canvas& canvas, const std::vector<LossPoint>& points) {
  std::vector<Column> columns(canvas.columns());
  for (const LossPoint& point : points) {
    const size_t at = canvas.column(point.step);
    Column& column = columns[at];
    if (!usable(point.loss)) {
      canvas.mark_not_finite(at);
    } else if (canvas.above(point.loss)) {
      column.spike = std::max(column.spike, point.loss);
    } else {
      column.min = std::min(column.min, point.loss);
      column.largest = std::max(column.largest, point.loss);
      column.sum += point.loss;
      ++column.count;
    }
  }
  return columns;
}

void draw_training(Canvas& canvas, const std::vector<LossPoint>& points) {
  const std::vector<Column> columns = columns_of(canvas, points);
  for (size_t i = 0; i < columns.size(); ++i) {
    const Column& column = columns[i];
    if (column.count > 0) {
      canvas.mark_spread(i, column.min, column.largest);
      canvas.mark(i, column.sum / static_cast<double>(column.count), '*');
    }
    if (std::isfinite(column.spike)) canvas.mark(i, column.spike, '^');
  }
}

void draw_validation(Canvas& canvas, const std::vector<LossPoint>& points) {
  for (const LossPoint& point : points) {
    if (usable(point.loss)) {
      canvas.mark(canvas.column(point.step), point.loss, 'o');
    } else {
      canvas.mark_not_finite(canvas.column(point.step));
    }
  }
}

// The marks of one run, then those of the next; a place where two runs meet has a +. A run does not meet itself.
class RunDrawing {
 public:
  RunDrawing(Canvas& canvas, size_t run)
      : canvas_(canvas), upper_(static_cast<char>('A' + run)), lower_(static_cast<char>('a' + run)) {}

  void draw(const RunLosses& losses) {
    const std::vector<Column> columns = columns_of(canvas_, losses.training);
    for (size_t i = 0; i < columns.size(); ++i) {
      const Column& column = columns[i];
      if (column.count > 0) put(i, column.sum / static_cast<double>(column.count), upper_);
      if (std::isfinite(column.spike)) canvas_.mark(i, column.spike, '^');
    }
    for (const LossPoint& point : losses.validation) {
      const size_t at = canvas_.column(point.step);
      if (usable(point.loss)) {
        put(at, point.loss, lower_);
      } else {
        canvas_.mark_not_finite(at);
      }
    }
  }

 private:
  void put(size_t column, double loss, char mark) {
    const char found = canvas_.above(loss) ? ' ' : canvas_.at(column, loss);
    const bool free = found == ' ' || found == '^' || found == upper_ || found == lower_;
    canvas_.mark(column, loss, free ? mark : '+');
  }

  Canvas& canvas_;
  char upper_, lower_;
};

// The highest loss above the scale; empty if there is none.
std::string highest_text(const std::vector<LossPoint>& all, const Canvas& canvas) {
  const LossPoint* highest = nullptr;
  for (const LossPoint& point : all) {
    if (!usable(point.loss) || !canvas.above(point.loss)) continue;
    if (highest == nullptr || point.loss > highest->loss) highest = &point;
  }
  if (highest == nullptr) return {};
  return fmt::format("{}^ above the scale, up to {:.4g} at step {}\n", std::string(kLabel + 1, ' '), highest->loss,
                     highest->step);
}

std::string not_finite_text(const std::vector<LossPoint>& all) {
  const auto odd = [](const LossPoint& point) { return !usable(point.loss); };
  const auto bad = std::count_if(all.begin(), all.end(), odd);
  return bad > 0 ? fmt::format("x not finite ({})", bad) : std::string();
}

// The marks of a line, with what they mean.
std::string legend_line(std::initializer_list<std::string> parts) {
  std::string text;
  for (const std::string& part : parts) {
    if (!part.empty()) text += (text.empty() ? "" : "   ") + part;
  }
  return std::string(kLabel + 1, ' ') + text + "\n";
}

std::vector<double> usable_losses(const std::vector<LossPoint>& points) {
  std::vector<double> losses;
  for (const LossPoint& point : points) {
    if (usable(point.loss)) losses.push_back(point.loss);
  }
  return losses;
}

// An empty canvas for these points, at least one of which is usable.
Canvas canvas_for(const std::vector<LossPoint>& all, const CurveOptions& options) {
  const auto by_step = [](const LossPoint& a, const LossPoint& b) { return a.step < b.step; };
  const auto [first, last] = std::minmax_element(all.begin(), all.end(), by_step);
  return {options, first->step, last->step, scale_of(usable_losses(all))};
}

// Instead of a drawing; empty if there is something to draw.
std::string nothing_to_draw(const std::vector<LossPoint>& all) {
  if (all.empty()) return "no loss was logged\n";
  return usable_losses(all).empty() ? "no finite loss was logged\n" : "";
}

}  // namespace

std::string draw_losses(const std::vector<LossPoint>& training, const std::vector<LossPoint>& validation,
                        const CurveOptions& options) {
  std::vector<LossPoint> all = training;
  all.insert(all.end(), validation.begin(), validation.end());
  if (std::string text = nothing_to_draw(all); !text.empty()) return text;
  Canvas canvas = canvas_for(all, options);
  draw_training(canvas, training);
  draw_validation(canvas, validation);
  return canvas.text() +
         legend_line({training.empty() ? "" : "* training (. min to max)", validation.empty() ? "" : "o validation",
                      not_finite_text(all)}) +
         highest_text(all, canvas);
}

std::string draw_runs(const std::vector<RunLosses>& runs, const CurveOptions& options) {
  assert(runs.size() <= kMaxCurves);
  std::vector<LossPoint> all;
  bool validated = false;
  for (const RunLosses& run : runs) {
    all.insert(all.end(), run.training.begin(), run.training.end());
    all.insert(all.end(), run.validation.begin(), run.validation.end());
    validated = validated || !run.validation.empty();
  }
  if (std::string text = nothing_to_draw(all); !text.empty()) return text;
  Canvas canvas = canvas_for(all, options);
  for (size_t i = 0; i < runs.size(); ++i) RunDrawing(canvas, i).draw(runs[i]);
  return canvas.text() +
         legend_line(
             {"A, B, ... training", validated ? "a, b, ... validation" : "", "+ several runs", not_finite_text(all)}) +
         highest_text(all, canvas);
}

}  // namespace quern::report
