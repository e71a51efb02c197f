// Validates a GGUF file.
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <numeric>

#include "core/error.h"
#include "core/text.h"
#include "formats/gguf.h"

namespace quern::formats {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are copied as they are");

// Bytes of a value; 0 for strings and arrays, which have a length of their own.
constexpr std::array<size_t, 13> kValueBytes = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};

// The smallest key (empty names are refused) and the smallest tensor, to limit their number by the file's size.
constexpr uint64_t kMinKeyBytes = 8 + 1 + 4 + 1;
constexpr uint64_t kMinTensorBytes = 8 + 1 + 4 + 8 + 4 + 8;
constexpr uint64_t kMaxKeyName = 65535;

// Reads from front to back, and fails with the offset.
class Cursor {
 public:
  Cursor(std::span<const std::byte> file, std::string_view name) : file_(file), name_(name) {}

  size_t at() const noexcept { return at_; }
  size_t left() const noexcept { return file_.size() - at_; }

  std::span<const std::byte> take(uint64_t bytes, std::string_view what) {
    if (bytes > left())
      fail(what, fmt::format("{} bytes", bytes), fmt::format("{} before the end of the file", left()));
    const auto taken = file_.subspan(at_, static_cast<size_t>(bytes));
    at_ += taken.size();
    return taken;
  }

  template <typename T>
  T number(std::string_view what) {
    T value;
    std::memcpy(&value, take(sizeof(T), what).data(), sizeof(T));
    return value;
  }

  std::string_view string(std::string_view what, uint64_t max = std::numeric_limits<uint64_t>::max()) {
    const auto length = number<uint64_t>(what);
    if (length > max) fail(what, fmt::format("at most {} bytes", max), fmt::format("{}", length));
    const auto bytes = take(length, what);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  // A name of a key or tensor, which appears in messages and is compared with other names.
  std::string_view identifier(std::string_view what, uint64_t max) {
    const std::string_view text = string(what, max);
    if (text.empty() || !is_utf8(text) || text.find('\0') != std::string_view::npos) {
      fail(what, "UTF-8 without a zero byte", in_quotes(text));
    }
    return text;
  }

  [[noreturn]] void fail(std::string_view what, std::string_view expected, std::string_view found) const {
    throw Error("[gguf] {}: {}, at byte {}: expected {}, found {}", name_, what, at_, expected, found);
  }

 private:
  std::span<const std::byte> file_;
  std::string_view name_;
  size_t at_ = 0;
};

void skip_strings(Cursor& cursor, uint64_t count, std::string_view what) {
  for (uint64_t i = 0; i < count; ++i) cursor.string(what);
}

GgufType read_type(Cursor& cursor, std::string_view what) {
  const auto type = cursor.number<uint32_t>(what);
  if (type >= kValueBytes.size()) cursor.fail(what, "a type of 0 to 12", std::to_string(type));
  return static_cast<GgufType>(type);
}

void check_flags(const Cursor& cursor, const GgufKey& key, std::string_view what) {
  const auto is_flag = [](std::byte b) { return b <= std::byte{1}; };
  if (key.type != GgufType::kBool || std::all_of(key.bytes.begin(), key.bytes.end(), is_flag)) return;
  cursor.fail(what, "0 or 1 for a bool", "another value");
}

GgufKey read_key(Cursor& cursor, std::span<const std::byte> file) {
  GgufKey key;
  key.name = cursor.identifier("the name of a key", kMaxKeyName);
  const std::string what = "key " + in_quotes(key.name);
  key.type = read_type(cursor, what);
  if (key.type == GgufType::kArray) {
    key.is_array = true;
    key.type = read_type(cursor, what);
    if (key.type == GgufType::kArray) cursor.fail(what, "an array of numbers or strings", "one of arrays");
    key.count = cursor.number<uint64_t>(what);
  }
  const size_t begin = cursor.at();
  if (key.type == GgufType::kString) {
    if (key.count > cursor.left() / sizeof(uint64_t)) {
      cursor.fail(what, fmt::format("at most {} strings", cursor.left() / sizeof(uint64_t)), std::to_string(key.count));
    }
    skip_strings(cursor, key.count, what);
  } else {
    const size_t each = kValueBytes[static_cast<size_t>(key.type)];
    if (key.count > cursor.left() / each) {
      cursor.fail(what, fmt::format("at most {} values", cursor.left() / each), std::to_string(key.count));
    }
    cursor.take(key.count * each, what);
  }
  key.bytes = file.subspan(begin, cursor.at() - begin);
  check_flags(cursor, key, what);
  return key;
}

// A tensor whose offset has not been checked.
struct ListedTensor {
  GgufTensor tensor;
  size_t bytes = 0;
  uint64_t offset = 0;
};

// Bytes of the values; an Error if the number overflows or rows are not whole blocks.
size_t checked_size(const Cursor& cursor, const GgufTensor& tensor, const GgmlTypeFacts& facts,
                    const std::string& what) {
  size_t count = 1;
  for (const size_t extent : tensor.shape) {
    if (extent == 0 || __builtin_mul_overflow(count, extent, &count)) {
      cursor.fail(what, "sizes from 1 whose product is below 2^64", fmt::format("({})", fmt::join(tensor.shape, ", ")));
    }
  }
  const size_t row = tensor.shape.empty() ? 1 : tensor.shape.back();
  if (row % facts.elements != 0) {
    cursor.fail(what, fmt::format("rows of {} with a multiple of {} values", facts.name, facts.elements),
                std::to_string(row));
  }
  size_t bytes = 0;
  if (__builtin_mul_overflow(count / facts.elements, facts.bytes, &bytes)) {
    cursor.fail(what, "fewer than 2^64 bytes", fmt::format("{} values", count));
  }
  return bytes;
}

ListedTensor read_tensor(Cursor& cursor) {
  ListedTensor listed;
  GgufTensor& tensor = listed.tensor;
  tensor.name = cursor.identifier("the name of a tensor", kMaxGgufName);
  const std::string what = "tensor " + in_quotes(tensor.name);
  const auto rank = cursor.number<uint32_t>(what);
  if (rank == 0 || rank > kMaxGgufRank) {
    cursor.fail(what, fmt::format("1 to {} dimensions", kMaxGgufRank), std::to_string(rank));
  }
  for (uint32_t i = 0; i < rank; ++i) tensor.shape.push_back(cursor.number<uint64_t>(what));
  std::reverse(tensor.shape.begin(), tensor.shape.end());
  const auto type = cursor.number<uint32_t>(what);
  const auto facts = ggml_type_facts(type);
  if (!facts) cursor.fail(what, "a type of ggml", fmt::format("type {}", type));
  tensor.type = facts->type;
  listed.bytes = checked_size(cursor, tensor, *facts, what);
  listed.offset = cursor.number<uint64_t>(what);
  return listed;
}

// Throws Error if two of the names are equal; `names` is sorted.
void check_unique(const std::vector<std::string_view>& names, std::string_view what, std::string_view file) {
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice == names.end()) return;
  throw Error("[gguf] {}: {} {}: expected it once, found it twice", file, what, in_quotes(*twice));
}

uint64_t alignment_of(const std::vector<GgufKey>& keys, std::string_view file) {
  const auto key = std::find_if(keys.begin(), keys.end(), [](const GgufKey& k) { return k.name == kGgufAlignmentKey; });
  if (key == keys.end()) return kGgufAlignment;
  uint32_t alignment = 0;
  if (key->type == GgufType::kU32 && !key->is_array) std::memcpy(&alignment, key->bytes.data(), sizeof(alignment));
  if (std::has_single_bit(alignment)) return alignment;
  throw Error("[gguf] {}: key {}: expected a power of two of type u32, found {}", file, in_quotes(kGgufAlignmentKey),
              key->type == GgufType::kU32 ? std::to_string(alignment) : "another type");
}

// `value` rounded up; the sum cannot overflow, because a file has fewer than 2^63 bytes and the alignment is 32 bits.
uint64_t aligned(uint64_t value, uint64_t alignment) { return (value + alignment - 1) & ~(alignment - 1); }

// Each tensor begins where the previous one ends, rounded up, and all are within the file.
void place(std::vector<ListedTensor>& listed, std::span<const std::byte> values, uint64_t alignment,
           std::string_view file) {
  uint64_t expected = 0;
  for (ListedTensor& one : listed) {
    if (one.offset != expected) {
      throw Error("[gguf] {}: tensor {}: expected its values at offset {}, where the previous tensor ends, found {}",
                  file, in_quotes(one.tensor.name), expected, one.offset);
    }
    if (one.offset > values.size() || one.bytes > values.size() - one.offset) {
      throw Error(
          "[gguf] {}: tensor {}: expected {} bytes of values at offset {}, found {} bytes in all; the file is "
          "incomplete",
          file, in_quotes(one.tensor.name), one.bytes, one.offset, values.size());
    }
    one.tensor.bytes = values.subspan(one.offset, one.bytes);
    expected = aligned(one.offset + one.bytes, alignment);
  }
}

void read_start(Cursor& cursor, std::string_view name) {
  const auto magic = cursor.take(4, "magic");
  if (std::memcmp(magic.data(), "GGUF", 4) != 0) {
    throw Error("[gguf] {}: expected a GGUF file, which starts with GGUF, found {}", name,
                in_quotes({reinterpret_cast<const char*>(magic.data()), magic.size()}));
  }
  const auto version = cursor.number<uint32_t>("version");
  if (version == 2 || version == 3) return;
  const bool swapped = version != 0 && (version & 0xffff) == 0;
  throw Error("[gguf] {}: expected version 2 or 3{}, found {}", name, swapped ? " in little-endian order" : "",
              swapped ? "a big-endian file" : std::to_string(version));
}

uint64_t read_count(Cursor& cursor, std::string_view what, uint64_t each) {
  const auto count = cursor.number<uint64_t>(what);
  if (count > cursor.left() / each) {
    cursor.fail(what, fmt::format("at most {} in a file of this size", cursor.left() / each), std::to_string(count));
  }
  return count;
}

template <typename T>
std::vector<std::string_view> sorted_names(const std::vector<T>& entries) {
  std::vector<std::string_view> names;
  names.reserve(entries.size());
  for (const T& entry : entries) names.push_back(entry.name);
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

// The lists grow as they are read instead of being allocated for the counts, which a damaged file may exaggerate up to
// its size.
GgufContents parse_gguf(std::span<const std::byte> file, std::string_view name) {
  Cursor cursor(file, name);
  read_start(cursor, name);
  const uint64_t tensors = read_count(cursor, "number of tensors", kMinTensorBytes);
  const uint64_t keys = read_count(cursor, "number of keys", kMinKeyBytes);
  GgufContents contents;
  for (uint64_t i = 0; i < keys; ++i) contents.keys.push_back(read_key(cursor, file));
  check_unique(sorted_names(contents.keys), "key", name);
  std::vector<ListedTensor> listed;
  for (uint64_t i = 0; i < tensors; ++i) listed.push_back(read_tensor(cursor));
  const uint64_t alignment = alignment_of(contents.keys, name);
  const uint64_t begin = aligned(cursor.at(), alignment);
  place(listed, begin < file.size() ? file.subspan(begin) : std::span<const std::byte>(), alignment, name);
  for (ListedTensor& one : listed) contents.tensors.push_back(std::move(one.tensor));
  check_unique(sorted_names(contents.tensors), "tensor", name);
  std::sort(contents.keys.begin(), contents.keys.end(),
            [](const GgufKey& a, const GgufKey& b) { return a.name < b.name; });
  return contents;
}

}  // namespace quern::formats
