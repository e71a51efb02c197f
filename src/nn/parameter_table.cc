#include "nn/parameters.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "core/philox.h"

namespace quern {
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

}  // namespace

ParameterLayout::ParameterLayout(const ModelConfig& config) {
  check(config);
  const size_t C = config.width;
  token_table_ = add("wte.weight", {config.vocabulary, C});
  position_table_ = add("wpe.weight", {config.context, C});
  for (size_t layer = 0; layer < config.layers; ++layer) {
    const std::string prefix = "h." + std::to_string(layer) + ".";
    BlockSlots block;
    block.norm1 = add_norm(prefix + "ln_1", C);
    block.qkv = add_linear(prefix + "attn.c_attn", C, 3 * C);
    block.project = add_linear(prefix + "attn.c_proj", C, C);
    block.norm2 = add_norm(prefix + "ln_2", C);
    block.expand = add_linear(prefix + "mlp.c_fc", C, 4 * C);
    block.contract = add_linear(prefix + "mlp.c_proj", 4 * C, C);
    blocks_.push_back(block);
  }
  final_norm_ = add_norm("ln_f", C);
}

size_t ParameterLayout::add(std::string name, std::vector<size_t> shape) {
  size_t size = 1;
  for (const size_t n : shape) size *= n;
  const size_t offset = size_;
  const bool matrix = shape.size() > 1;
  tensors_.push_back({std::move(name), std::move(shape), offset, size, matrix, 0, 0});
  size_ += (size + kAlignFloats - 1) / kAlignFloats * kAlignFloats;
  count_ += size;
  cut(tensors_.size() - 1);
  return offset;
}

void ParameterLayout::cut(size_t index) {
  TensorInfo& tensor = tensors_[index];
  tensor.first_segment = segments_.size();
  const size_t rows = tensor.decay ? tensor.shape[0] : 1, width = tensor.size / rows;
  const size_t at_once = std::max<size_t>(1, kSegmentFloats / width / kSegmentRows) * kSegmentRows;
  for (size_t row = 0; row < rows; row += at_once) {
    const size_t n = std::min(at_once, rows - row);
    segments_.push_back({tensor.offset + row * width, n * width, index, row, n, tensor.decay});
  }
  tensor.segments = segments_.size() - tensor.first_segment;
}

LinearSlots ParameterLayout::add_linear(const std::string& name, size_t in, size_t out) {
  const size_t tensor = tensors_.size(), weight = add(name + ".weight", {in, out});
  return {weight, add(name + ".bias", {out}), in, out, tensor};
}

NormSlots ParameterLayout::add_norm(const std::string& name, size_t width) {
  const size_t tensor = tensors_.size(), weight = add(name + ".weight", {width});
  return {weight, add(name + ".bias", {width}), tensor};
}

void initialise(const ParameterLayout& layout, size_t layers, uint64_t seed, std::span<float> weights) {
  std::fill(weights.begin(), weights.end(), 0.0f);
  const double residual = 0.02 / std::sqrt(2.0 * static_cast<double>(layers));
  for (size_t t = 0; t < layout.tensors().size(); ++t) {
    const TensorInfo& tensor = layout.tensors()[t];
    const std::span<float> values = weights.subspan(tensor.offset, tensor.size);
    if (tensor.shape.size() > 1) {
      const RandomStream stream{.seed = seed, .purpose = Purpose::kInitialise, .sequence = static_cast<uint32_t>(t)};
      fill_normal(stream, tensor.name.ends_with("c_proj.weight") ? residual : 0.02, values);
    } else if (tensor.name.ends_with(".weight")) {
      std::fill(values.begin(), values.end(), 1.0f);
    }
  }
}

}  // namespace quern
