// A model's weights, with packed copies of the matrices if many micro-batches will use them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/aligned_buffer.h"
#include "kernels/gemm.h"
#include "kernels/types.h"
#include "nn/parameter_table.h"

namespace quern::nn {

// A matrix as an operand of products. The packed copies, null if there are none, are used instead of the values.
struct Matrix {
  const float* values = nullptr;
  size_t width = 0;                       // of a row
  const void* packed_forward = nullptr;   // the right operand of y = x W, or of y = x W^T for Product::kOutIn
  const void* packed_backward = nullptr;  // the right operand of dx = dy W^T, or of dx = dy W
  kernels::DType packed_type = kernels::DType::kF32;
};

// Which copies of each matrix exist in the order in which GEMM reads it.
struct Packing {
  Packing(bool all) : forward(all), backward(all) {}  // true: for training, false: none
  static Packing for_inference() { return {true, false}; }

  bool forward, backward;  // for the products of forward, and of the input gradient

 private:
  Packing(bool with_forward, bool with_backward) : forward(with_forward), backward(with_backward) {}
};

class Weights {
 public:
  // Zero weights. Packed copies pay off when several micro-batches, or tokens, use the same weights, because packing is
  // then done once instead of for each of them. Results are bit-identical either way. With 16-bit `storage`, products
  // use the packed copies, which then exist at least for forward; backward needs both. `table` must outlive the
  // weights.
  Weights(const ParameterTable& table, Packing packing, kernels::DType storage = kernels::DType::kF32);

  // Size in bytes of both packed copies of all matrices.
  static size_t packed_bytes(const ParameterTable& table, kernels::DType storage);

  const ParameterTable& table() const { return *table_; }
  std::span<float> values() { return values_.span(); }
  std::span<const float> values() const { return values_.span(); }
  const float* at(ParameterId id) const { return values_.data() + (*table_)[id].offset; }
  Matrix matrix(ParameterId id) const;
  kernels::DType storage() const { return storage_; }

  // Of a model with adapters: gives back the memory of the matrices that only products read and for which there are
  // packed copies. Their values are then 0, and repack() leaves the copies as they are.
  void release_adapted();
  static size_t releasable_bytes(const ParameterTable& table);

  // Call after the values have changed, and after select_target().
  void repack();
  // The same for one segment; different segments may be repacked concurrently.
  void repack(size_t segment);

 private:
  struct Packed {
    static constexpr size_t kNone = SIZE_MAX;
    size_t forward = kNone, backward = kNone;  // offsets in packed_, in elements; kNone: no such copy
  };
  void repack(ParameterId id, size_t row, size_t rows);
  void pack(kernels::PackB args, size_t element);
  std::byte* at(size_t element) { return packed_.data() + element * kernels::size_of(storage_); }
  const std::byte* at(size_t element) const { return packed_.data() + element * kernels::size_of(storage_); }

  const ParameterTable* table_;
  AlignedBuffer<float> values_;
  kernels::DType storage_;
  AlignedBuffer<std::byte> packed_;
  std::vector<Packed> copies_;  // by ParameterId; empty if nothing is packed
  bool released_ = false;
};

}  // namespace quern::nn
