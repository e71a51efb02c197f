// Tensors that are converted while they are copied from one file to another, a few rows at a time, so that a model is
// never in memory as a whole.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "formats/ggml_type.h"

namespace quern::formats {

// A tensor whose values can be read in fp32, whatever their format and wherever they are. A row is the last dimension;
// a vector is one row.
struct TensorSource {
  std::string name;
  std::vector<size_t> shape;
  // Writes rows `first` ... to `out`, whose size is a multiple of a row.
  std::function<void(size_t first, std::span<float> out)> read;

  size_t row() const { return shape.empty() ? 1 : shape.back(); }
  size_t rows() const;
  size_t size() const { return rows() * row(); }
};

// A tensor in a file. `bytes` must stay valid; `type` must be convertible, and a row whole blocks of it.
TensorSource stored_tensor(std::string name, std::vector<size_t> shape, GgmlType type,
                           std::span<const std::byte> bytes);
// A tensor in memory, which must stay valid.
TensorSource memory_tensor(std::string name, std::vector<size_t> shape, std::span<const float> values);

// The matrix with rows and columns exchanged. Holds a copy of it while it is being read.
TensorSource transposed(TensorSource matrix);
// Row r of the result is row from(r) of the matrix, or element from(r) of a vector. Holds a copy of a vector.
TensorSource with_rows_from(TensorSource source, std::function<size_t(size_t row)> from);

// The bytes of tensors in another format, in pieces of about a megabyte. Not for several threads at once.
class TensorEncoder {
 public:
  TensorEncoder();
  TensorEncoder(const TensorEncoder&) = delete;
  TensorEncoder& operator=(const TensorEncoder&) = delete;
  ~TensorEncoder();

  // A function that returns the next bytes of the tensor as `type`: called with 0, then with the end of what it
  // returned before. What it returns is valid until the next call of any such function. Valid as long as this object.
  std::function<std::span<const std::byte>(size_t at)> reader(TensorSource source, GgmlType type);

 private:
  struct Buffers;
  std::unique_ptr<Buffers> buffers_;
};

}  // namespace quern::formats
