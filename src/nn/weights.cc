#include "nn/weights.h"

#include <cassert>

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

// Whether nothing but products reads the matrix, and its values never change.
bool is_releasable(const Parameter& parameter) {
  return !parameter.trainable && !parameter.lookup && parameter.product != Product::kNone;
}

}  // namespace

Weights::Weights(const ParameterTable& table, Packing packing, kernels::DType storage)
    : table_(&table), values_(table.size(), Fill::kZero), storage_(storage) {
  const bool narrow = storage != kernels::DType::kF32;
  const bool forward = packing.forward || narrow, backward = packing.backward || (narrow && !packing.forward);
  if (!forward && !backward) return;
  size_t elements = 0;
  const auto add = [&](bool exists, size_t K, size_t N) {
    if (!exists) return Packed::kNone;
    const size_t at = elements;
    elements += copy_size(K, N);
    return at;
  };
  for (const Parameter& parameter : table.all()) {
    copies_.emplace_back();
    if (parameter.product == Product::kNone) continue;
    const size_t rows = parameter.rows(), width = parameter.width();
    const bool in_out = parameter.product == Product::kInOut;
    copies_.back().forward = add(forward, in_out ? rows : width, in_out ? width : rows);
    copies_.back().backward = add(backward, in_out ? width : rows, in_out ? rows : width);
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
  if (packed.forward != Packed::kNone) matrix.packed_forward = at(packed.forward);
  if (packed.backward != Packed::kNone) matrix.packed_backward = at(packed.backward);
  return matrix;
}

void Weights::repack() {
  if (copies_.empty()) return;
  for (size_t i = 0; i < copies_.size(); ++i) {
    const Parameter& parameter = table_->all()[i];
    if (!released_ || !is_releasable(parameter)) repack(static_cast<ParameterId>(i), 0, parameter.rows());
  }
}

void Weights::release_adapted() {
  if (!table_->has_adapters() || copies_.empty()) return;
  for (size_t i = 0; i < copies_.size(); ++i) {
    const Parameter& parameter = table_->all()[i];
    assert(copies_[i].forward != Packed::kNone || parameter.product == Product::kNone);
    if (is_releasable(parameter)) discard(values_.span().subspan(parameter.offset, parameter.size));
  }
  released_ = true;
}

size_t Weights::releasable_bytes(const ParameterTable& table) {
  size_t floats = 0;
  for (const Parameter& parameter : table.all()) {
    if (table.has_adapters() && is_releasable(parameter)) floats += parameter.size;
  }
  return floats * sizeof(float);
}

void Weights::repack(size_t segment) {
  if (copies_.empty()) return;
  const Segment& s = table_->segments()[segment];
  repack(s.parameter, s.row, s.rows);
}

void Weights::pack(kernels::PackB args, size_t element) {
  if (element == Packed::kNone) return;
  args.packed = at(element);
  args.packed_type = storage_;
  kernels::pack_b(args);
}

// Rows of a matrix are rows of the operand W (K = rows) and columns of the operand W^T (K = width).
void Weights::repack(ParameterId id, size_t row, size_t rows) {
  const Parameter& parameter = (*table_)[id];
  if (parameter.product == Product::kNone) return;
  const size_t width = parameter.width();
  const Packed& packed = copies_[static_cast<size_t>(id)];
  const size_t copies = (packed.forward != Packed::kNone ? 1 : 0) + (packed.backward != Packed::kNone ? 1 : 0);
  const Timed timed(kPackWeights,
                    static_cast<double>(rows * width * copies * (sizeof(float) + kernels::size_of(storage_))));
  const bool in_out = parameter.product == Product::kInOut;
  const kernels::Operand weight{at(id), width};
  const Range mine{row, row + rows};
  pack({.layout = Layout::kNN, .b = weight, .K = parameter.rows(), .rows = mine, .columns = {0, width}},
       in_out ? packed.forward : packed.backward);
  pack({.layout = Layout::kNT, .b = weight, .K = width, .rows = {0, width}, .columns = mine},
       in_out ? packed.backward : packed.forward);
}

}  // namespace quern::nn
