#include "data/token_shards.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cctype>
#include <cstring>
#include <system_error>

#include "core/error.h"

namespace quern::data {
namespace {

namespace fs = std::filesystem;

static_assert(std::endian::native == std::endian::little, "shards are read in place");

constexpr int32_t kShardMagic32 = 20240801;  // llm.c's later format with 32-bit tokens

int32_t header_int(std::string_view bytes, size_t index) {
  int32_t value = 0;
  std::memcpy(&value, bytes.data() + index * sizeof(value), sizeof(value));
  return value;
}

ShardTokens find_llm_c(std::string_view bytes, std::string_view file) {
  if (bytes.size() < kShardHeaderBytes) {
    throw Error("[data] {}: expected a header of {} bytes, found {} bytes", file, kShardHeaderBytes, bytes.size());
  }
  if (const int32_t magic = header_int(bytes, 0); magic != kShardMagic) {
    throw Error("[data] {}: header word 0: expected magic {}, found {}", file, kShardMagic, magic);
  }
  if (const int32_t version = header_int(bytes, 1); version != kShardVersion) {
    throw Error("[data] {}: header word 1: expected version {}, found {}", file, kShardVersion, version);
  }
  const int32_t count = header_int(bytes, 2);
  if (count <= 0) throw Error("[data] {}: header word 2: expected at least 1 token, found {}", file, count);
  const size_t expected = kShardHeaderBytes + static_cast<size_t>(count) * sizeof(uint16_t);
  if (bytes.size() != expected) {
    throw Error("[data] {}: expected {} bytes for {} tokens, found {} bytes", file, expected, count, bytes.size());
  }
  const char* tokens = bytes.data() + kShardHeaderBytes;
  ShardTokens found = {reinterpret_cast<const uint16_t*>(tokens), static_cast<uint64_t>(count), ShardFormat::kLlmC};
  std::memcpy(found.tokenizer.data(), bytes.data() + kShardDigestAt, found.tokenizer.size());
  return found;
}

ShardTokens find_raw(std::string_view bytes, std::string_view file) {
  if (bytes.empty()) throw Error("[data] {}: expected tokens of 2 bytes, found an empty file", file);
  if (bytes.size() % sizeof(uint16_t) != 0) {
    throw Error("[data] {}: expected tokens of 2 bytes, found an odd size of {} bytes", file, bytes.size());
  }
  return {reinterpret_cast<const uint16_t*>(bytes.data()), bytes.size() / sizeof(uint16_t), ShardFormat::kRaw16};
}

// Raw files have no magic number, so anything that resembles a header is treated as one: the magic number in either
// byte order, the one for 32-bit tokens, or a version and a count that match the size.
bool has_header(std::string_view bytes) {
  if (bytes.size() < sizeof(int32_t)) return false;
  const int32_t magic = header_int(bytes, 0);
  const auto swapped = static_cast<int32_t>(__builtin_bswap32(static_cast<uint32_t>(kShardMagic)));
  if (magic == kShardMagic || magic == kShardMagic32 || magic == swapped) return true;
  if (bytes.size() < kShardHeaderBytes || header_int(bytes, 1) != kShardVersion) return false;
  const int32_t count = header_int(bytes, 2);
  return count > 0 && bytes.size() == kShardHeaderBytes + static_cast<size_t>(count) * sizeof(uint16_t);
}

std::vector<fs::path> shards_in(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    if (is_shard_name(it->path())) found.push_back(it->path());
  }
  if (error) throw Error("[data] {}: cannot list the folder: {}", folder.string(), error.message());
  if (found.empty()) throw Error("[data] {}: expected token shards (*.bin), found none in the folder", folder.string());
  std::sort(found.begin(), found.end());
  return found;
}

std::vector<fs::path> with_folders_listed(const std::vector<fs::path>& paths) {
  std::vector<fs::path> files;
  for (const fs::path& path : paths) {
    std::error_code error;
    if (!fs::is_directory(path, error)) {
      files.push_back(path);
      continue;
    }
    const std::vector<fs::path> found = shards_in(path);
    files.insert(files.end(), found.begin(), found.end());
  }
  return files;
}

}  // namespace

bool is_shard_name(const fs::path& path) {
  std::string ending = path.extension().string();
  for (char& c : ending) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return ending == ".bin";
}

ShardTokens find_shard_tokens(std::string_view bytes, std::string_view file, ShardFormat format) {
  assert(reinterpret_cast<uintptr_t>(bytes.data()) % alignof(uint16_t) == 0);
  const bool llm_c = format == ShardFormat::kLlmC || (format == ShardFormat::kDetect && has_header(bytes));
  return llm_c ? find_llm_c(bytes, file) : find_raw(bytes, file);
}

TokenShards::TokenShards(const std::vector<fs::path>& paths, uint32_t vocabulary, ShardFormat format)
    : vocabulary_(vocabulary) {
  for (const fs::path& path : with_folders_listed(paths)) {
    MappedFile file(path, EmptyFile::kRefused);
    const ShardTokens tokens = file.read([&] { return find_shard_tokens(file.text(), path.string(), format); });
    shards_.push_back({std::move(file), tokens, size_});
    size_ += tokens.count;
  }
  if (shards_.empty()) throw Error("[data] expected token shards, found none");
}

void TokenShards::check_tokenizer(const Sha256Digest& digest, const fs::path& file) const {
  for (const Shard& shard : shards_) {
    if (shard.tokens.tokenizer == Sha256Digest{} || shard.tokens.tokenizer == digest) continue;
    throw Error(
        "[data] {0}: expected tokens of {1}, found those of another tokenizer; convert the text again with `quern "
        "tokenize TEXT --tokenizer {1} --out DIR`",
        shard.file.path().string(), file.string());
  }
}

bool TokenShards::have_digests() const {
  return std::ranges::none_of(shards_, [](const Shard& shard) { return shard.tokens.tokenizer == Sha256Digest{}; });
}

void TokenShards::copy(uint64_t position, size_t count, int32_t* out) const {
  assert(position <= size_ && count <= size_ - position);
  const auto after = [](uint64_t p, const Shard& s) { return p < s.start; };
  auto shard = std::upper_bound(shards_.begin(), shards_.end(), position, after) - 1;
  for (; count > 0; ++shard) {
    const uint64_t first = position - shard->start;
    const size_t here = static_cast<size_t>(std::min<uint64_t>(count, shard->tokens.count - first));
    const auto highest = widen(shard->tokens.tokens + first, here, out);
    // In a truncated file, everything from some byte on reads as zeros. So if the last token is 256 or more, it is
    // intact, and so are those before it. This saves the 2 us of querying the size for most windows.
    if (shard->file.has_lost_pages() || out[here - 1] < 256) shard->file.check_intact();
    if (highest >= vocabulary_) throw_outside_vocabulary(*shard, first, {out, here});
    position += here;
    out += here;
    count -= here;
  }
}

// Checks the copy, since the file may have changed.
void TokenShards::throw_outside_vocabulary(const Shard& shard, uint64_t first, std::span<const int32_t> tokens) const {
  const auto bad = std::find_if(tokens.begin(), tokens.end(),
                                [this](int32_t token) { return static_cast<uint32_t>(token) >= vocabulary_; });
  assert(bad != tokens.end());
  throw Error("[data] {}: token {}: expected an id below the vocabulary of {}, found {}", shard.file.path().string(),
              first + static_cast<uint64_t>(bad - tokens.begin()), vocabulary_, *bad);
}

}  // namespace quern::data
