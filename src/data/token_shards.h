// Memory-mapped token files of other trainers. One or more files form one stream.
//
// clang-format off
//   llm.c `.bin`    256 little-endian int32 (magic 20240520, version 1, number of tokens, zeros), then uint16 tokens;
//                   in files written by Quern, words 8 to 15 are the digest of the tokenizer; others have zeros there
//   nanoGPT `.bin`  uint16 tokens only
// clang-format on
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

#include "core/mapped_file.h"
#include "core/sha256.h"
#include "data/token_stream.h"

namespace quern::data {

// kDetect: llm.c if the file starts with its magic number, which as two raw tokens would be 55432, 308 (the first is
// outside GPT-2's vocabulary of 50,257). Files with a damaged or newer llm.c header are rejected, not read as raw
// tokens.
enum class ShardFormat { kDetect, kLlmC, kRaw16 };

inline constexpr int32_t kShardMagic = 20240520;
inline constexpr int32_t kShardVersion = 1;
inline constexpr size_t kShardHeaderInts = 256;
inline constexpr size_t kShardHeaderBytes = kShardHeaderInts * sizeof(int32_t);
inline constexpr size_t kShardDigestAt = 8 * sizeof(int32_t);

// Whether the file name is that of a shard: it ends in .bin, ignoring case.
bool is_shard_name(const std::filesystem::path& path);

struct ShardTokens {
  const uint16_t* tokens;
  uint64_t count;
  ShardFormat format;           // as detected
  Sha256Digest tokenizer = {};  // Tokenizer::digest(); zeros if the file does not contain it
};

// Locates the tokens of a shard in `bytes`, which must be aligned to 2 bytes. Reads the header only. Error, with
// `file`, the location, and the expected and found values, unless it is a complete shard with at least one token.
ShardTokens find_shard_tokens(std::string_view bytes, std::string_view file, ShardFormat format = ShardFormat::kDetect);

// The files in the given order; a directory stands for its .bin files, in the order of their names. Sizes are checked
// when files are opened, tokens when they are copied, so opening a hundred gigabytes is immediate.
class TokenShards : public TokenStream {
 public:
  TokenShards(const std::vector<std::filesystem::path>& paths, uint32_t vocabulary,
              ShardFormat format = ShardFormat::kDetect);

  uint64_t size() const override { return size_; }
  // Error for an id >= vocabulary, or if another program has truncated a shard in the range.
  void copy(uint64_t position, size_t count, int32_t* out) const override;

  // Error, naming the shard, if one was made with a tokenizer whose digest differs from `digest`, that of `file`.
  void check_tokenizer(const Sha256Digest& digest, const std::filesystem::path& file) const;

  // Whether every shard says which tokenizer made it.
  bool have_digests() const;

  size_t shards() const { return shards_.size(); }
  const std::filesystem::path& path(size_t shard) const { return shards_[shard].file.path(); }
  uint64_t shard_size(size_t shard) const { return shards_[shard].tokens.count; }

 private:
  struct Shard {
    MappedFile file;
    ShardTokens tokens;
    uint64_t start;  // position of its first token in the stream
  };

  [[noreturn]] void throw_outside_vocabulary(const Shard& shard, uint64_t first, std::span<const int32_t> tokens) const;

  uint32_t vocabulary_;
  uint64_t size_ = 0;
  std::vector<Shard> shards_;
};

}  // namespace quern::data
