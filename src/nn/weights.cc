#include "nn/weights.h"

#include "nn/regions.h"

namespace quern {

using kernels::Layout;

namespace {

constexpr size_t kLinearsPerBlock = 4;

// A matrix starts on a cache line in every format.
size_t round_up(size_t n) { return (n + 31) / 32 * 32; }

}  // namespace

Weights::Weights(const ParameterLayout& layout, bool packed, kernels::DType storage)
    : layout_(&layout), values_(layout.size(), Fill::kZero), storage_(storage) {
  if (!packed && storage == kernels::DType::kF32) return;
  matrix_of_.assign(layout.tensors().size(), kNone);
  matrix_of_[0] = kOutput;
  for (const BlockSlots& block : layout.blocks()) {
    for (const LinearSlots* slots : {&block.qkv, &block.project, &block.expand, &block.contract}) {
      matrix_of_[slots->tensor] = matrices_.size();
      matrices_.push_back(reserve(slots->in, slots->out));
    }
  }
  const TensorInfo& table = layout.tensors().front();  // wte.weight
  output_ = reserve(table.shape[1], table.shape[0]);   // logits: K = C, N = V
  packed_ = AlignedBuffer<std::byte>(packed_size_ * kernels::size_of(storage), Fill::kZero);
}

Weights::PackedMatrix Weights::reserve(size_t in, size_t out) {
  const size_t forward = packed_size_;
  const size_t backward = forward + round_up(kernels::packed_size(in, out));
  packed_size_ = backward + round_up(kernels::packed_size(out, in));
  return {forward, backward};
}

size_t Weights::packed_bytes(const ParameterLayout& layout, kernels::DType storage) {
  size_t elements = 0;
  const auto add = [&](size_t in, size_t out) {
    elements += round_up(kernels::packed_size(in, out)) + round_up(kernels::packed_size(out, in));
  };
  for (const BlockSlots& block : layout.blocks()) {
    for (const LinearSlots* slots : {&block.qkv, &block.project, &block.expand, &block.contract}) {
      add(slots->in, slots->out);
    }
  }
  add(layout.tensors().front().shape[1], layout.tensors().front().shape[0]);
  return elements * kernels::size_of(storage);
}

void Weights::repack() {
  if (packed_.empty()) return;
  for (size_t segment = 0; segment < layout_->segments().size(); ++segment) repack(segment);
}

// Rows of a linear weight (in, out) are rows of the product x W and columns of dy W^T; rows of the token table (V, C)
// are columns of the product x W^T and rows of dlogits W.
void Weights::repack(size_t segment) {
  if (packed_.empty()) return;
  const Segment& s = layout_->segments()[segment];
  if (matrix_of_[s.tensor] == kNone) return;
  const Timed timed(kPackWeights, static_cast<double>(s.size * 2 * (sizeof(float) + kernels::size_of(storage_))));
  const bool output = matrix_of_[s.tensor] == kOutput;
  const PackedMatrix& matrix = output ? output_ : matrices_[matrix_of_[s.tensor]];
  const TensorInfo& tensor = layout_->tensors()[s.tensor];
  const size_t rows = tensor.shape[0], width = tensor.shape[1];
  const kernels::Operand weight{values_.data() + tensor.offset, width};
  const Range mine{s.row, s.row + s.rows};
  kernels::pack_b({.layout = Layout::kNN,
                   .b = weight,
                   .K = rows,
                   .packed = at(output ? matrix.backward : matrix.forward),
                   .packed_type = storage_,
                   .rows = mine,
                   .columns = {0, width}});
  kernels::pack_b({.layout = Layout::kNT,
                   .b = weight,
                   .K = width,
                   .packed = at(output ? matrix.forward : matrix.backward),
                   .packed_type = storage_,
                   .rows = {0, width},
                   .columns = mine});
}

Norm Weights::norm(const NormSlots& slots) const {
  return {values_.data() + slots.weight, values_.data() + slots.bias};
}

Linear Weights::linear(const LinearSlots& slots, const PackedMatrix* matrix) const {
  return {.weight = values_.data() + slots.weight,
          .bias = values_.data() + slots.bias,
          .in = slots.in,
          .out = slots.out,
          .packed_forward = matrix != nullptr ? at(matrix->forward) : nullptr,
          .packed_backward = matrix != nullptr ? at(matrix->backward) : nullptr,
          .packed_type = storage_};
}

BlockWeights Weights::block(size_t layer) const {
  const BlockSlots& slots = layout_->blocks()[layer];
  const PackedMatrix* matrices = packed_.empty() ? nullptr : matrices_.data() + layer * kLinearsPerBlock;
  const auto matrix = [matrices](size_t i) { return matrices != nullptr ? matrices + i : nullptr; };
  return {.norm1 = norm(slots.norm1),
          .qkv = linear(slots.qkv, matrix(0)),
          .project = linear(slots.project, matrix(1)),
          .norm2 = norm(slots.norm2),
          .expand = linear(slots.expand, matrix(2)),
          .contract = linear(slots.contract, matrix(3))};
}

}  // namespace quern
