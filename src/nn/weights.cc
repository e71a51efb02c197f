#include "nn/weights.h"

namespace quern {

using kernels::Layout;

namespace {

constexpr size_t kLinearsPerBlock = 4;

size_t round_up(size_t n) { return (n + 15) / 16 * 16; }

}  // namespace

Weights::Weights(const ParameterLayout& layout, bool packed) : layout_(&layout), values_(layout.size(), Fill::kZero) {
  if (!packed) return;
  for (const BlockSlots& block : layout.blocks()) {
    for (const LinearSlots* slots : {&block.qkv, &block.project, &block.expand, &block.contract}) {
      places_.push_back(reserve(slots->in, slots->out));
    }
  }
  const TensorInfo& table = layout.tensors().front();  // wte.weight
  output_ = reserve(table.shape[1], table.shape[0]);   // logits: K = C, N = V
  packed_ = AlignedBuffer<float>(packed_size_, Fill::kZero);
}

Weights::Place Weights::reserve(size_t in, size_t out) {
  const size_t forward = packed_size_;
  const size_t backward = forward + round_up(kernels::packed_size(in, out));
  packed_size_ = backward + round_up(kernels::packed_size(out, in));
  return {forward, backward};
}

void Weights::repack() {
  if (packed_.empty()) return;
  const auto pack = [this](const LinearSlots& slots, const Place& place) {
    const kernels::Operand weight{values_.data() + slots.weight, slots.out};
    kernels::pack_b(Layout::kNN, weight, slots.in, slots.out, packed_.data() + place.forward);
    kernels::pack_b(Layout::kNT, weight, slots.out, slots.in, packed_.data() + place.backward);
  };
  const Place* place = places_.data();
  for (const BlockSlots& block : layout_->blocks()) {
    for (const LinearSlots* slots : {&block.qkv, &block.project, &block.expand, &block.contract})
      pack(*slots, *place++);
  }
  const TensorInfo& table = layout_->tensors().front();
  const size_t V = table.shape[0], C = table.shape[1];
  const kernels::Operand tokens{token_table(), C};
  kernels::pack_b(Layout::kNT, tokens, C, V, packed_.data() + output_.forward);
  kernels::pack_b(Layout::kNN, tokens, V, C, packed_.data() + output_.backward);
}

Norm Weights::norm(const NormSlots& slots) const {
  return {values_.data() + slots.weight, values_.data() + slots.bias};
}

Linear Weights::linear(const LinearSlots& slots, const Place* place) const {
  const float* packed = packed_.data();
  return {.weight = values_.data() + slots.weight,
          .bias = values_.data() + slots.bias,
          .in = slots.in,
          .out = slots.out,
          .packed_forward = place != nullptr ? packed + place->forward : nullptr,
          .packed_backward = place != nullptr ? packed + place->backward : nullptr};
}

BlockWeights Weights::block(size_t layer) const {
  const BlockSlots& slots = layout_->blocks()[layer];
  const Place* places = packed_.empty() ? nullptr : places_.data() + layer * kLinearsPerBlock;
  const auto place = [places](size_t i) { return places != nullptr ? places + i : nullptr; };
  return {.norm1 = norm(slots.norm1),
          .qkv = linear(slots.qkv, place(0)),
          .project = linear(slots.project, place(1)),
          .norm2 = norm(slots.norm2),
          .expand = linear(slots.expand, place(2)),
          .contract = linear(slots.contract, place(3))};
}

}  // namespace quern
