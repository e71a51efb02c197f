#include "formats/tensor_source.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <functional>
#include <numeric>
#include <utility>

#include "core/aligned_buffer.h"
#include "core/mapped_file.h"
#include "formats/blocks.h"

namespace quern::formats {
namespace {

constexpr size_t kPieceFloats = size_t{256} << 10;  // 1 MiB of fp32

// Reads all of a tensor.
AlignedBuffer<float> read_all(const TensorSource& source) {
  AlignedBuffer<float> values(source.size());
  source.read(0, values.span());
  return values;
}

}  // namespace

size_t TensorSource::rows() const {
  if (shape.empty()) return 1;
  return std::accumulate(shape.begin(), shape.end() - 1, size_t{1}, std::multiplies<>());
}

TensorSource stored_tensor(std::string name, std::vector<size_t> shape, GgmlType type,
                           std::span<const std::byte> bytes) {
  TensorSource source{std::move(name), std::move(shape), {}};
  assert(bytes.size() == encoded_bytes(type, source.size()));
  source.read = [type, bytes, row = source.row()](size_t first, std::span<float> out) {
    const auto piece = bytes.subspan(encoded_bytes(type, first * row), encoded_bytes(type, out.size()));
    decode(type, piece, out);
    MappedFile::release(piece);
  };
  return source;
}

TensorSource memory_tensor(std::string name, std::vector<size_t> shape, std::span<const float> values) {
  TensorSource source{std::move(name), std::move(shape), {}};
  source.read = [values, row = source.row()](size_t first, std::span<float> out) {
    std::copy_n(values.begin() + static_cast<std::ptrdiff_t>(first * row), out.size(), out.begin());
  };
  return source;
}

// The copy is made at the first row and freed after the last.
TensorSource transposed(TensorSource matrix) {
  assert(matrix.shape.size() == 2);
  TensorSource source{matrix.name, {matrix.shape[1], matrix.shape[0]}, {}};
  auto copy = std::make_shared<AlignedBuffer<float>>();
  source.read = [matrix = std::move(matrix), copy](size_t first, std::span<float> out) {
    if (copy->empty()) *copy = read_all(matrix);
    const size_t rows = matrix.shape[0], columns = matrix.shape[1];
    const size_t count = out.size() / rows;
    for (size_t r = 0; r < rows; ++r) {
      for (size_t c = 0; c < count; ++c) out[c * rows + r] = (*copy)[r * columns + first + c];
    }
    if (first + count == columns) *copy = {};
  };
  return source;
}

TensorSource with_rows_from(TensorSource source, std::function<size_t(size_t row)> from) {
  TensorSource mapped{source.name, source.shape, {}};
  if (source.shape.size() == 1) {
    mapped.read = [source = std::move(source), from = std::move(from)](size_t, std::span<float> out) {
      const AlignedBuffer<float> copy = read_all(source);
      for (size_t i = 0; i < out.size(); ++i) out[i] = copy[from(i)];
    };
  } else {
    mapped.read = [source = std::move(source), from = std::move(from)](size_t first, std::span<float> out) {
      const size_t row = source.row();
      for (size_t i = 0; i * row < out.size(); ++i) source.read(from(first + i), out.subspan(i * row, row));
    };
  }
  return mapped;
}

struct TensorEncoder::Buffers {
  AlignedBuffer<float> values;
  AlignedBuffer<std::byte> bytes;
};

TensorEncoder::TensorEncoder() : buffers_(std::make_unique<Buffers>()) {}
TensorEncoder::~TensorEncoder() = default;

std::function<std::span<const std::byte>(size_t at)> TensorEncoder::reader(TensorSource source, GgmlType type) {
  return [source = std::move(source), type, &buffers = *buffers_](size_t at) -> std::span<const std::byte> {
    const size_t row = source.row(), rows = source.rows();
    const size_t first = at / encoded_bytes(type, row);
    const size_t count = std::min(rows - first, std::max<size_t>(1, kPieceFloats / row)) * row;
    if (buffers.values.size() < count) buffers.values = AlignedBuffer<float>(count);
    const size_t bytes = encoded_bytes(type, count);
    if (buffers.bytes.size() < bytes) buffers.bytes = AlignedBuffer<std::byte>(bytes);
    const auto values = buffers.values.span().first(count);
    source.read(first, values);
    const auto out = buffers.bytes.span().first(bytes);
    encode(type, values, out);
    return out;
  };
}

}  // namespace quern::formats
