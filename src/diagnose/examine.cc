#include "diagnose/examine.h"

#include <algorithm>
#include <cmath>

#include "kernels/convert.h"
#include "kernels/tensor_stats.h"

namespace quern::train {
namespace {

// The value of largest magnitude, or one that is not finite. 16-bit values are converted a piece at a time.
float largest_of(const kernels::SavedTensor& values, size_t count) {
  if (values.type == kernels::DType::kF32) {
    return kernels::tensor_stats(static_cast<const float*>(values.data), count).largest;
  }
  float wide[1024], largest = 0;
  for (size_t i = 0; i < count && std::isfinite(largest); i += std::size(wide)) {
    const size_t n = std::min(std::size(wide), count - i);
    kernels::widen(values.type, static_cast<const kernels::Half*>(values.data) + i, wide, n);
    largest = kernels::tensor_stats(wide, n).largest;
  }
  return largest;
}

}  // namespace

std::string_view kind_of(const BadValue& where) { return where.nan ? "NaN" : "infinity"; }

std::optional<BadValue> first_bad_tensor(const nn::ParameterTable& layout, std::span<const float> values) {
  for (const nn::Parameter& tensor : layout.all()) {
    const float largest = kernels::tensor_stats(values.data() + tensor.offset, tensor.size).largest;
    if (!std::isfinite(largest)) return BadValue{.tensor = tensor.name, .nan = std::isnan(largest)};
  }
  return std::nullopt;
}

void FirstBad::saw(std::string_view name, const kernels::SavedTensor& values, size_t count, uint32_t sequence) {
  if (where_) return;
  const float largest = largest_of(values, count);
  if (std::isfinite(largest)) return;
  where_ = BadValue{.tensor = std::string(name), .nan = std::isnan(largest), .sequence = sequence};
}

}  // namespace quern::train
