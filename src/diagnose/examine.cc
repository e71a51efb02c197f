#include "diagnose/examine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "kernels/convert.h"
#include "kernels/tensor_stats.h"

namespace quern::train {
namespace {

constexpr size_t kNormTensors = 2, kLinearTensors = 2;  // weight and bias

}  // namespace

std::string_view kind_of(const BadPlace& where) { return where.nan ? "NaN" : "infinity"; }

std::optional<BadPlace> first_bad_tensor(const ParameterLayout& layout, std::span<const float> values) {
  for (const TensorInfo& tensor : layout.tensors()) {
    const float largest = kernels::tensor_stats(values.data() + tensor.offset, tensor.size).largest;
    if (!std::isfinite(largest)) return BadPlace{.tensor = tensor.name, .nan = std::isnan(largest)};
  }
  return std::nullopt;
}

void FirstBad::look(std::string_view name, const float* values, size_t n) {
  if (where_) return;
  const float largest = kernels::tensor_stats(values, n).largest;
  if (std::isfinite(largest)) return;
  where_ = BadPlace{.tensor = std::string(name), .nan = std::isnan(largest), .sequence = sequence_};
}

void FirstBad::look(std::string_view name, const SavedTensor& values, size_t n) {
  if (values.type == kernels::DType::kF32) return look(name, static_cast<const float*>(values.data), n);
  float wide[1024];
  for (size_t i = 0; i < n && !where_; i += std::size(wide)) {
    const size_t count = std::min(std::size(wide), n - i);
    kernels::widen(values.type, static_cast<const kernels::Half*>(values.data) + i, wide, count);
    look(name, wide, count);
  }
}

// Checks the saved tensors of a block in the order of computation. The output of a norm is not saved; a bad value in it
// shows up in the tensors computed from it.
void FirstBad::look_at_block(const Pass& pass, size_t layer) {
  const Workspace& work = pass.work;
  const BlockActivations& a = work.block(layer);
  const size_t n = pass.rows() * pass.config.width;
  const auto name = [layer](std::string_view part) { return fmt::format("h.{}.{}", layer, part); };
  look(name("ln_1"), a.norm1.normal, n);
  look(name("attn.c_attn"), a.qkv, 3 * n);
  look(name("attn"), a.attention, n);
  look(name("attn.c_proj"), work.stream.data(), n);
  look(name("ln_2"), a.norm2.normal, n);
  look(name("mlp.c_fc"), a.expand_input, 4 * n);
  look(name("mlp.act"), work.wide.data(), 4 * n);
  look(name("mlp.c_proj"), work.delta.data(), n);
}

void FirstBad::look_at_gradient(const Pass& pass, size_t tensor) {
  const TensorInfo& info = pass.layout.tensors()[tensor];
  look("gradient of " + info.name, pass.gradient->values().data() + info.offset, info.size);
}

void FirstBad::saw(const Pass& pass, Stage stage, size_t which) {
  if (where_) return;
  sequence_ = pass.batch.first_sequence;
  const Workspace& work = pass.work;
  const size_t n = pass.rows() * pass.config.width;
  const auto look_at_dx = [&](std::string_view of) { look(fmt::format("gradient of {}", of), work.dx.data(), n); };
  switch (stage) {
    case Stage::kEmbedding:
      return look("embedding", work.entry(0), n);
    case Stage::kBlock:
      return look_at_block(pass, which);
    case Stage::kFinalNorm:
      return look("ln_f", work.inner.data(), n);
    case Stage::kLogits:
      return look("logits", work.logits.data(), which * pass.config.vocabulary);
    case Stage::kOutputGradient:
      look("loss", work.losses.data(), pass.rows());
      look_at_gradient(pass, 0);
      return look("gradient of ln_f", work.dinner.data(), n);
    case Stage::kFinalNormGradient:
      for (size_t i = 0; i < kNormTensors; ++i) look_at_gradient(pass, pass.layout.final_norm().tensor + i);
      return look_at_dx("the last block");
    case Stage::kBlockGradient: {
      const BlockSlots& slots = pass.layout.blocks()[which];
      for (const size_t tensor : {slots.contract.tensor, slots.expand.tensor, slots.norm2.tensor, slots.project.tensor,
                                  slots.qkv.tensor, slots.norm1.tensor}) {
        for (size_t i = 0; i < kLinearTensors; ++i) look_at_gradient(pass, tensor + i);
      }
      return look_at_dx(which == 0 ? std::string("embedding") : fmt::format("block h.{}", which - 1));
    }
    case Stage::kInputGradient:
      return look_at_gradient(pass, 1);
  }
}

}  // namespace quern::train
