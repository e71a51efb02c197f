// clang-format off
// safetensors: named tensors in one file, as Hugging Face's library of that name reads and writes them.
//
//   8 bytes    length N of the header, little-endian
//   N bytes    JSON: {"__metadata__": {"key": "text"},
//                     "name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}}
//   the rest   the values, little-endian, row-major; data_offsets count from the first byte of this part
//
// The values of all tensors fill the rest without overlaps or gaps.
// clang-format on
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/files.h"
#include "core/mapped_file.h"
#include "core/sha256.h"

namespace quern::safetensors {

enum class Dtype : uint8_t { kBool, kU8, kI8, kI16, kU16, kF16, kBF16, kI32, kU32, kF32, kF64, kI64, kU64 };

std::string_view dtype_name(Dtype dtype) noexcept;  // as in the file: "F32"
size_t dtype_bytes(Dtype dtype) noexcept;

// A tensor that does not own its values: they belong to the caller of write() or to the file it was read from.
struct Tensor {
  std::string name;
  Dtype dtype = Dtype::kF32;
  std::vector<size_t> shape;  // empty: a scalar
  std::span<const std::byte> bytes;
  // If given, write() takes the values from here instead: called with 0, then with the end of what it returned before.
  std::function<std::span<const std::byte>(size_t at)> read = {};
};

using Metadata = std::map<std::string, std::string>;

inline constexpr size_t kMaxHeader = 100'000'000;  // the limit of the Hugging Face library
inline constexpr size_t kMaxRank = 32;

// Size and hash of what write() wrote, to verify the file later.
struct Stamp {
  uint64_t bytes = 0;
  Sha256Digest sha256 = {};
  bool operator==(const Stamp&) const = default;
};

// Writes a complete file to `file` (and does not close it), tensors in the given order. The values go from the caller's
// memory to the system without another copy. Names must be unique and valid UTF-8, and shapes must match their bytes.
// The values start at a multiple of 64, so that mapped fp32 tensors can be used in place.
Stamp write(FileWriter& file, std::span<const Tensor> tensors, const Metadata& metadata = {});

struct Contents {
  Metadata metadata;
  std::vector<Tensor> tensors;  // ordered by offset
};

// Validates all of `file` before it returns: the header's length and format, every dtype, shape and offset, and that
// the values fill the file. `name` is for messages. The tensors refer to `file`. Memory use is proportional to the
// header. Throws Error with the location, the expected and the actual value.
Contents parse(std::span<const std::byte> file, std::string_view name);

// A mapped file and its tensors. Move-only; the tensors' bytes are valid as long as it exists.
class File {
 public:
  explicit File(const std::filesystem::path& path);

  const Metadata& metadata() const noexcept { return contents_.metadata; }
  std::span<const Tensor> tensors() const noexcept { return contents_.tensors; }
  const Tensor* find(std::string_view name) const noexcept;  // null if there is none; logarithmic
  std::span<const std::byte> bytes() const noexcept { return mapping_.bytes(); }
  // Call after reading values: throws Error if another program has truncated the file, which turns them into zeros.
  void check_intact() const { mapping_.check_intact(); }

 private:
  MappedFile mapping_;
  Contents contents_;
  std::vector<uint32_t> by_name_;
};

}  // namespace quern::safetensors
