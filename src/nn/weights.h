// A model's weights, with packed copies of the matrices if many micro-batches will use them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/aligned_buffer.h"
#include "nn/linear.h"
#include "nn/parameters.h"

namespace quern {

struct Norm {
  const float* weight;
  const float* bias;
};

struct BlockWeights {
  Norm norm1;
  Linear qkv, project;
  Norm norm2;
  Linear expand, contract;
};

class Weights {
 public:
  // Zero weights. `packed` stores two more copies of each matrix in the order in which GEMM reads it. This pays off
  // when several micro-batches share a step, because packing is then done once instead of per micro-batch. Results are
  // bit-identical either way. With 16-bit `storage`, products use the packed copies, which then always exist.
  Weights(const ParameterLayout& layout, bool packed, kernels::DType storage = kernels::DType::kF32);

  // Size in bytes of both packed copies of all matrices.
  static size_t packed_bytes(const ParameterLayout& layout, kernels::DType storage);

  std::span<float> values() { return values_.span(); }
  std::span<const float> values() const { return values_.span(); }

  // Call after the values have changed, and after select_target().
  void repack();
  // The same for one segment; different segments may be repacked concurrently.
  void repack(size_t segment);

  BlockWeights block(size_t layer) const;
  Norm final_norm() const { return norm(layout_->final_norm()); }
  const float* token_table() const { return values_.data() + layout_->token_table(); }
  const float* position_table() const { return values_.data() + layout_->position_table(); }
  // The token table packed for the logits and for their gradient; null if not packed.
  const void* packed_output() const { return packed_.empty() ? nullptr : at(output_.forward); }
  const void* packed_output_backward() const { return packed_.empty() ? nullptr : at(output_.backward); }
  kernels::DType packed_type() const { return storage_; }

 private:
  static constexpr size_t kOutput = SIZE_MAX - 1, kNone = SIZE_MAX;

  struct PackedMatrix {
    size_t forward, backward;  // offsets in packed_, in elements
  };
  Norm norm(const NormSlots& slots) const;
  Linear linear(const LinearSlots& slots, const PackedMatrix* matrix) const;
  PackedMatrix reserve(size_t in, size_t out);
  const std::byte* at(size_t matrix) const { return packed_.data() + matrix * kernels::size_of(storage_); }
  std::byte* at(size_t matrix) { return packed_.data() + matrix * kernels::size_of(storage_); }

  const ParameterLayout* layout_;
  AlignedBuffer<float> values_;
  kernels::DType storage_;
  AlignedBuffer<std::byte> packed_;
  size_t packed_size_ = 0;              // in elements
  std::vector<PackedMatrix> matrices_;  // four per block
  PackedMatrix output_{};               // of the token table
  std::vector<size_t> matrix_of_;       // tensor -> index into matrices_, kOutput or kNone
};

}  // namespace quern
