#include "nn/parameter_table.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numbers>
#include <utility>

#include "core/philox.h"

namespace quern::nn {
namespace {

constexpr size_t kAlignFloats = 16;  // 64 bytes

// Box-Muller in double precision on two words of the stream; (0, 1] for the logarithm.
std::pair<float, float> normal_pair(uint32_t a, uint32_t b, double deviation) {
  const double radius = std::sqrt(-2.0 * std::log((static_cast<double>(a) + 1.0) * 0x1p-32)) * deviation;
  const double angle = 2.0 * std::numbers::pi * static_cast<double>(b) * 0x1p-32;
  return {static_cast<float>(radius * std::cos(angle)), static_cast<float>(radius * std::sin(angle))};
}

void fill_normal(const RandomStream& stream, double deviation, std::span<float> values) {
  for (size_t i = 0; i < values.size(); i += 4) {
    const PhiloxBlock words = stream.block(static_cast<uint32_t>(i / 4));
    const auto [a, b] = normal_pair(words[0], words[1], deviation);
    const auto [c, d] = normal_pair(words[2], words[3], deviation);
    const float four[4] = {a, b, c, d};
    std::copy_n(four, std::min<size_t>(4, values.size() - i), values.begin() + static_cast<ptrdiff_t>(i));
  }
}

// 24 bits each, so that every value is exact in fp32 before it is scaled.
void fill_uniform(const RandomStream& stream, double bound, std::span<float> values) {
  for (size_t i = 0; i < values.size(); ++i) {
    const uint32_t word = stream.block(static_cast<uint32_t>(i / 4))[i % 4];
    values[i] = static_cast<float>(bound * (static_cast<double>(word >> 8) * 0x1p-23 - 1.0));
  }
}

}  // namespace

ParameterId ParameterTable::add(ParameterSpec spec) {
  Parameter parameter{std::move(spec)};
  parameter.size = 1;
  for (const size_t n : parameter.shape) parameter.size *= n;
  count_ += parameter.size;
  parameters_.push_back(std::move(parameter));
  return static_cast<ParameterId>(parameters_.size() - 1);
}

void ParameterTable::use_in_product(ParameterId id, Product product) {
  parameters_[static_cast<size_t>(id)].product = product;
}

void ParameterTable::freeze(ParameterId id) {
  assert(segments_.empty());
  parameters_[static_cast<size_t>(id)].trainable = false;
}

size_t ParameterTable::trainable_count() const {
  size_t count = 0;
  for (const Parameter& parameter : parameters_) count += parameter.trainable ? parameter.size : 0;
  return count;
}

bool ParameterTable::has_adapters() const {
  return std::ranges::any_of(parameters_, [](const Parameter& parameter) { return parameter.adapter; });
}

void ParameterTable::lay_out() {
  assert(segments_.empty());
  for (Parameter& parameter : parameters_) {
    if (parameter.trainable) place(parameter);
  }
  trainable_size_ = size_;
  for (Parameter& parameter : parameters_) {
    if (!parameter.trainable) place(parameter);
  }
  for (size_t i = 0; i < parameters_.size(); ++i) {
    if (parameters_[i].trainable) cut(static_cast<ParameterId>(i));
  }
}

size_t ParameterTable::largest_segment() const {
  size_t largest = 0;
  for (const Segment& segment : segments_) largest = std::max(largest, segment.size);
  return largest;
}

void ParameterTable::place(Parameter& parameter) {
  parameter.offset = size_;
  size_ += (parameter.size + kAlignFloats - 1) / kAlignFloats * kAlignFloats;
}

void ParameterTable::cut(ParameterId id) {
  Parameter& parameter = parameters_[static_cast<size_t>(id)];
  parameter.first_segment = segments_.size();
  const size_t rows = parameter.rows(), width = parameter.width();
  const size_t rows_per_segment = std::max<size_t>(1, kSegmentFloats / width / kSegmentRows) * kSegmentRows;
  for (size_t row = 0; row < rows; row += rows_per_segment) {
    const size_t n = std::min(rows_per_segment, rows - row);
    segments_.push_back({parameter.offset + row * width, n * width, id, row, n, parameter.decay});
  }
  parameter.segments = segments_.size() - parameter.first_segment;
}

void initialise(const ParameterTable& table, uint64_t seed, std::span<float> weights) {
  std::fill(weights.begin(), weights.end(), 0.0f);
  for (size_t i = 0; i < table.all().size(); ++i) {
    const Parameter& parameter = table.all()[i];
    const std::span<float> values = weights.subspan(parameter.offset, parameter.size);
    if (parameter.initial.kind == Initial::Kind::kConstant) {
      std::fill(values.begin(), values.end(), static_cast<float>(parameter.initial.value));
      continue;
    }
    const RandomStream stream{.seed = seed, .purpose = Purpose::kInitialise, .sequence = static_cast<uint32_t>(i)};
    const bool uniform = parameter.initial.kind == Initial::Kind::kUniform;
    (uniform ? fill_uniform : fill_normal)(stream, parameter.initial.value, values);
  }
}

}  // namespace quern::nn
