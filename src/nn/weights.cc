#include "nn/weights.h"

#include "kernels/gemm.h"
#include "nn/regions.h"

namespace quern::nn {

using kernels::Layout;

namespace {

// Elements of one packed copy of a (K, N) operand. It starts on a cache line in every format.
size_t copy_size(size_t K, size_t N) { return (kernels::packed_size(K, N) + 31) / 32 * 32; }

// Elements of both packed copies of a matrix.
size_t copies_size(const Parameter& matrix) {
  return copy_size(matrix.rows(), matrix.width()) + copy_size(matrix.width(), matrix.rows());
}

}  // namespace

Weights::Weights(const ParameterTable& table, bool packed, kernels::DType storage)
    : table_(&table), values_(table.size(), Fill::kZero), storage_(storage) {
  if (!packed && storage == kernels::DType::kF32) return;
  size_t elements = 0;
  for (const Parameter& parameter : table.all()) {
    copies_.emplace_back();
    if (parameter.product == Product::kNone) continue;
    const size_t rows = parameter.rows(), width = parameter.width();
    const bool in_out = parameter.product == Product::kInOut;
    copies_.back() = {.forward = elements,
                      .backward = elements + (in_out ? copy_size(rows, width) : copy_size(width, rows))};
    elements += copies_size(parameter);
  }
  packed_ = AlignedBuffer<std::byte>(elements * kernels::size_of(storage), Fill::kZero);
}

size_t Weights::packed_bytes(const ParameterTable& table, kernels::DType storage) {
  size_t elements = 0;
  for (const Parameter& parameter : table.all()) {
    if (parameter.product != Product::kNone) elements += copies_size(parameter);
  }
  return elements * kernels::size_of(storage);
}

Matrix Weights::matrix(ParameterId id) const {
  Matrix matrix{.values = at(id), .width = (*table_)[id].width(), .packed_type = storage_};
  if (copies_.empty()) return matrix;
  const Packed& packed = copies_[static_cast<size_t>(id)];
  matrix.packed_forward = at(packed.forward);
  matrix.packed_backward = at(packed.backward);
  return matrix;
}

void Weights::repack() {
  if (copies_.empty()) return;
  for (size_t i = 0; i < copies_.size(); ++i) repack(static_cast<ParameterId>(i), 0, table_->all()[i].rows());
}

void Weights::repack(size_t segment) {
  if (copies_.empty()) return;
  const Segment& s = table_->segments()[segment];
  repack(s.parameter, s.row, s.rows);
}

// Rows of a matrix are rows of the operand W (K = rows) and columns of the operand W^T (K = width).
void Weights::repack(ParameterId id, size_t row, size_t rows) {
  const Parameter& parameter = (*table_)[id];
  if (parameter.product == Product::kNone) return;
  const size_t width = parameter.width();
  const Timed timed(kPackWeights, static_cast<double>(rows * width * 2 * (sizeof(float) + kernels::size_of(storage_))));
  const Packed& packed = copies_[static_cast<size_t>(id)];
  const bool in_out = parameter.product == Product::kInOut;
  const kernels::Operand weight{at(id), width};
  const Range mine{row, row + rows};
  kernels::pack_b({.layout = Layout::kNN,
                   .b = weight,
                   .K = parameter.rows(),
                   .packed = at(in_out ? packed.forward : packed.backward),
                   .packed_type = storage_,
                   .rows = mine,
                   .columns = {0, width}});
  kernels::pack_b({.layout = Layout::kNT,
                   .b = weight,
                   .K = width,
                   .packed = at(in_out ? packed.backward : packed.forward),
                   .packed_type = storage_,
                   .rows = {0, width},
                   .columns = mine});
}

}  // namespace quern::nn
