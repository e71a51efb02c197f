#include "checkpoint/safetensors.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cstring>
#include <numeric>
#include <unordered_set>

#include "checkpoint/safetensors_header.h"
#include "core/error.h"
#include "core/text.h"

namespace quern::safetensors {
namespace {

static_assert(std::endian::native == std::endian::little, "values and lengths are copied as they are");

struct DtypeFacts {
  std::string_view name;
  size_t bytes;
};

constexpr std::array<DtypeFacts, 13> kDtypes = {{{"BOOL", 1},
                                                 {"U8", 1},
                                                 {"I8", 1},
                                                 {"I16", 2},
                                                 {"U16", 2},
                                                 {"F16", 2},
                                                 {"BF16", 2},
                                                 {"I32", 4},
                                                 {"U32", 4},
                                                 {"F32", 4},
                                                 {"F64", 8},
                                                 {"I64", 8},
                                                 {"U64", 8}}};

constexpr size_t kLengthBytes = sizeof(uint64_t);

// Computes the size in bytes of a tensor of this shape; returns false on overflow.
bool shape_bytes(const std::vector<size_t>& shape, Dtype dtype, size_t& bytes) noexcept {
  bytes = dtype_bytes(dtype);
  if (std::find(shape.begin(), shape.end(), size_t{0}) != shape.end()) bytes = 0;
  for (const size_t extent : shape) {
    if (__builtin_mul_overflow(bytes, extent, &bytes)) return false;
  }
  return true;
}

// Hashes in pieces that stay in the L2 cache until the system has copied them.
class HashingWriter {
 public:
  explicit HashingWriter(FileWriter& file) : file_(file) {}

  void write(std::span<const std::byte> bytes) {
    constexpr size_t kPiece = 256 << 10;
    for (size_t at = 0; at < bytes.size(); at += kPiece) {
      const auto piece = bytes.subspan(at, std::min(kPiece, bytes.size() - at));
      hash_.update(piece);
      file_.write(piece);
      written_ += piece.size();
    }
  }

  Stamp stamp() { return {written_, hash_.finish()}; }

 private:
  FileWriter& file_;
  Sha256 hash_;
  uint64_t written_ = 0;
};

void check_writable(const FileWriter& file, std::span<const Tensor> tensors, const Metadata& metadata) {
  std::unordered_set<std::string_view> names = {"__metadata__"};
  for (const Tensor& tensor : tensors) {
    size_t bytes = 0;
    assert(shape_bytes(tensor.shape, tensor.dtype, bytes) && bytes == tensor.bytes.size());
    static_cast<void>(bytes);
    if (!is_utf8(tensor.name) || !names.insert(tensor.name).second) {
      throw Error("[safetensors] {}: expected unique tensor names in UTF-8, found {}, a duplicate or not UTF-8",
                  file.path().native(), in_quotes(tensor.name));
    }
  }
  for (const auto& [key, value] : metadata) {
    if (!is_utf8(key) || !is_utf8(value)) {
      throw Error("[safetensors] {}: expected metadata in UTF-8, found {} = {}", file.path().native(), in_quotes(key),
                  in_quotes(value));
    }
  }
}

size_t header_length(std::span<const std::byte> file, std::string_view name) {
  if (file.size() < kLengthBytes) {
    throw Error("[safetensors] {}: expected at least 8 bytes, found {}", name, file.size());
  }
  uint64_t length = 0;
  std::memcpy(&length, file.data(), kLengthBytes);
  if (length > kMaxHeader) {
    throw Error("[safetensors] {}: header length: expected at most {}, found {}", name, kMaxHeader, length);
  }
  if (length > file.size() - kLengthBytes) {
    throw Error("[safetensors] {}: expected a header of {} bytes, found {} bytes after its length", name, length,
                file.size() - kLengthBytes);
  }
  return static_cast<size_t>(length);
}

// Entries are checked in the order of their values: each begins where the previous one ends, its size matches its
// shape, and the last ends with the file.
void check_entry(const Entry& entry, uint64_t begin, uint64_t available, std::string_view name) {
  size_t bytes = 0;
  const bool fits = shape_bytes(entry.shape, entry.dtype, bytes);
  if (entry.offsets[0] > entry.offsets[1] || entry.offsets[1] > available) {
    throw Error("[safetensors] {}: tensor {}: expected offsets in order and up to {}, found {} to {}", name,
                in_quotes(entry.name), available, entry.offsets[0], entry.offsets[1]);
  }
  if (entry.offsets[0] != begin) {
    throw Error("[safetensors] {}: tensor {}: expected values to start at {}, where the previous tensor ends, found {}",
                name, in_quotes(entry.name), begin, entry.offsets[0]);
  }
  if (!fits || bytes != entry.offsets[1] - entry.offsets[0]) {
    throw Error("[safetensors] {}: tensor {}: expected {} bytes for its shape, found {}", name, in_quotes(entry.name),
                fits ? std::to_string(bytes) : "more than 2^64", entry.offsets[1] - entry.offsets[0]);
  }
}

}  // namespace

std::string_view dtype_name(Dtype dtype) noexcept { return kDtypes[static_cast<size_t>(dtype)].name; }
size_t dtype_bytes(Dtype dtype) noexcept { return kDtypes[static_cast<size_t>(dtype)].bytes; }

Stamp write(FileWriter& file, std::span<const Tensor> tensors, const Metadata& metadata) {
  check_writable(file, tensors, metadata);
  std::string header = make_header(tensors, metadata);
  header.append(63 - (kLengthBytes + header.size() + 63) % 64, ' ');
  if (header.size() > kMaxHeader) {
    throw Error("[safetensors] {}: header: expected at most {} bytes, found {}", file.path().native(), kMaxHeader,
                header.size());
  }
  const uint64_t length = header.size();
  HashingWriter out(file);
  out.write(std::as_bytes(std::span(&length, 1)));
  out.write(std::as_bytes(std::span(header)));
  for (const Tensor& tensor : tensors) {
    if (!tensor.read) out.write(tensor.bytes);
    for (size_t at = 0; tensor.read && at < tensor.bytes.size();) {
      const std::span<const std::byte> some = tensor.read(at);
      out.write(some);
      at += some.size();
    }
  }
  return out.stamp();
}

Contents parse(std::span<const std::byte> file, std::string_view name) {
  const size_t length = header_length(file, name);
  const auto values = file.subspan(kLengthBytes + length);
  Header header = parse_header({reinterpret_cast<const char*>(file.data()) + kLengthBytes, length}, name);
  std::sort(header.entries.begin(), header.entries.end(),
            [](const Entry& a, const Entry& b) { return std::tie(a.offsets, a.name) < std::tie(b.offsets, b.name); });
  Contents contents{std::move(header.metadata), {}};
  contents.tensors.reserve(header.entries.size());
  uint64_t end = 0;
  for (Entry& entry : header.entries) {
    check_entry(entry, end, values.size(), name);
    end = entry.offsets[1];
    contents.tensors.push_back({std::move(entry.name), entry.dtype, std::move(entry.shape),
                                values.subspan(entry.offsets[0], end - entry.offsets[0])});
  }
  if (end != values.size()) {
    throw Error("[safetensors] {}: expected {} bytes of values, found {}", name, end, values.size());
  }
  return contents;
}

File::File(const std::filesystem::path& path)
    : mapping_(path),
      contents_(mapping_.read([&] { return parse(mapping_.bytes(), path.native()); })),
      by_name_(contents_.tensors.size()) {
  std::iota(by_name_.begin(), by_name_.end(), 0u);
  std::sort(by_name_.begin(), by_name_.end(),
            [this](uint32_t a, uint32_t b) { return contents_.tensors[a].name < contents_.tensors[b].name; });
}

const Tensor* File::find(std::string_view name) const noexcept {
  const auto found =
      std::lower_bound(by_name_.begin(), by_name_.end(), name,
                       [this](uint32_t i, std::string_view wanted) { return contents_.tensors[i].name < wanted; });
  if (found == by_name_.end() || contents_.tensors[*found].name != name) return nullptr;
  return &contents_.tensors[*found];
}

}  // namespace quern::safetensors
