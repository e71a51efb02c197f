// Token files of other trainers, memory mapped: one or many of them are one stream.
//
//   llm.c `.bin`    256 little-endian int32 (magic 20240520, version 1, number of tokens, zeros), then uint16 tokens;
//                   of those that Quern writes, words 8 to 15 are the digest of the tokenizer, where others have zeros
//   nanoGPT `.bin`  uint16 tokens and nothing else
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

// kDetect: llm.c when the file starts with its magic number, which as two raw tokens is 55432, 308 (the first is past
// GPT-2's vocabulary of 50,257). Files that carry a damaged or newer llm.c header are refused, not read as raw tokens.
enum class ShardFormat { kDetect, kLlmC, kRaw16 };

inline constexpr int32_t kShardMagic = 20240520;
inline constexpr int32_t kShardVersion = 1;
inline constexpr size_t kShardHeaderInts = 256;
inline constexpr size_t kShardHeaderBytes = kShardHeaderInts * sizeof(int32_t);
inline constexpr size_t kShardDigestAt = 8 * sizeof(int32_t);

// Whether a file is named as a shard: .bin, in either case.
bool is_shard_name(const std::filesystem::path& path);

struct ShardTokens {
  const uint16_t* tokens;
  uint64_t count;
  ShardFormat format;           // the one that was found
  Sha256Digest tokenizer = {};  // Tokenizer::digest(); zeros where the file does not say
};

// Where the tokens of a shard are in `bytes`, which must be aligned to 2 bytes. Reads the header only. Throws Error
// with `file`, the place, what was expected and what was found, for anything but a whole shard with at least one token.
ShardTokens find_shard_tokens(std::string_view bytes, std::string_view file, ShardFormat format = ShardFormat::kDetect);

// The files in the order given; a folder stands for the files in it that end in .bin, in the order of their names.
// Files are checked for their size when opened, tokens when they are copied: opening a hundred gigabytes is immediate.
class TokenShards : public TokenStream {
 public:
  TokenShards(const std::vector<std::filesystem::path>& paths, uint32_t vocabulary,
              ShardFormat format = ShardFormat::kDetect);

  uint64_t size() const override { return size_; }
  // Error for an id >= vocabulary, and when another program has truncated a shard that it reads.
  void copy(uint64_t position, size_t count, int32_t* out) const override;

  // Error, naming the shard, when one was made with another tokenizer than that with this digest, which is in `file`.
  void check_tokenizer(const Sha256Digest& digest, const std::filesystem::path& file) const;

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
