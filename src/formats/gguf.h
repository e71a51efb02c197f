// clang-format off
// GGUF: the model files of llama.cpp and ggml. Versions 2 and 3, little-endian.
//
//   "GGUF", u32 version, u64 number of tensors, u64 number of keys
//   for each key      string name, u32 type, value             string: u64 length, bytes
//                     an array: u32 type, u64 count, values    no arrays of arrays
//   for each tensor   string name, u32 rank, u64 sizes[rank], u32 ggml type, u64 offset
//   zeros up to a multiple of general.alignment (a key; 32 if absent)
//   the tensors' values, in the order of the list, each at the next multiple of the alignment
//
// A tensor's sizes are in the reverse order of a row-major shape: a matrix of R rows and C columns has sizes C, R.
// clang-format on
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/mapped_file.h"
#include "formats/ggml_type.h"

namespace quern::formats {

enum class GgufType : uint32_t { kU8, kI8, kU16, kI16, kU32, kI32, kF32, kBool, kString, kArray, kU64, kI64, kF64 };

inline constexpr size_t kMaxGgufName = 63;  // bytes of a tensor's name, in ggml's memory
inline constexpr size_t kMaxGgufRank = 4;
inline constexpr size_t kGgufAlignment = 32;
inline constexpr const char* kGgufAlignmentKey = "general.alignment";

// A key with its value, which stays in the file. Arrays are `count` values of `type`; others have a count of 1.
struct GgufKey {
  std::string_view name;
  GgufType type = GgufType::kU8;  // of the elements of an array
  bool is_array = false;
  uint64_t count = 1;
  std::span<const std::byte> bytes = {};  // the values, without type and count
};

struct GgufTensor {
  std::string_view name;
  std::vector<size_t> shape;  // row-major: the reverse of the file's order
  GgmlType type = GgmlType::kF32;
  std::span<const std::byte> bytes;
};

struct GgufContents {
  std::vector<GgufKey> keys;        // sorted by name
  std::vector<GgufTensor> tensors;  // in the order of the file
};

// Validates all of `file` before it returns: every length, count, type, name and offset, and that the values are
// contiguous and within the file. Names are unique UTF-8. `name` is for messages. The result refers to `file`; its size
// is proportional to the number of keys and tensors, which the file's size limits. Throws Error with the location, the
// expected and the actual value.
GgufContents parse_gguf(std::span<const std::byte> file, std::string_view name);

// A mapped file with checked access to its keys. Move-only; views are valid as long as it exists.
class GgufFile {
 public:
  explicit GgufFile(const std::filesystem::path& path);

  const GgufKey* find(std::string_view key) const noexcept;  // null if there is none
  bool contains(std::string_view key) const noexcept { return find(key) != nullptr; }
  std::span<const GgufTensor> tensors() const noexcept { return contents_.tensors; }
  const GgufTensor* find_tensor(std::string_view name) const noexcept;
  std::string name() const { return mapping_.path().string(); }  // for messages

  // Each throws an Error with the key if it is missing, has another type or is out of range. Any type of integer is
  // accepted for a whole number, any type of number for a real one.
  uint64_t whole(std::string_view key, uint64_t max) const;
  double real(std::string_view key, double min, double max) const;
  std::string_view text(std::string_view key) const;
  bool flag(std::string_view key) const;
  std::vector<std::string_view> texts(std::string_view key) const;  // 16 bytes for each, of at least 8 in the file
  std::vector<int32_t> whole_list(std::string_view key) const;      // of u8 ... i32
  std::vector<float> real_list(std::string_view key) const;         // of f32

  [[noreturn]] void fail(std::string_view key, std::string_view expected) const;

  // Call after reading values: throws Error if another program has truncated the file, which turns them into zeros.
  void check_intact() const { mapping_.check_intact(); }

 private:
  const GgufKey& at(std::string_view key) const;
  const GgufKey& list_at(std::string_view key, std::string_view expected) const;

  MappedFile mapping_;
  GgufContents contents_;
  std::vector<uint32_t> by_name_;  // of the tensors
};

}  // namespace quern::formats
