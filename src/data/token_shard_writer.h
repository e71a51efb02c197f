// Writes token shards for llm.c or nanoGPT; token_shards.h describes the formats.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "core/files.h"
#include "data/token_shards.h"

namespace quern::data {

// When finish() returns, the file exists under its name, complete and durable. Until then, and after an Error, there is
// only a temporary file (core/files.h), which the destructor removes, or the next writer if the process is killed.
// Every failure (missing directory, full disk, id above 65,535, more
// tokens than an llm.c header can count) is an Error naming the file.
class TokenShardWriter {
 public:
  // `tokenizer` is the tokenizer's digest, for the header of the llm.c format; zeros if unknown.
  explicit TokenShardWriter(std::filesystem::path path, ShardFormat format = ShardFormat::kLlmC,
                            const Sha256Digest& tokenizer = {});
  TokenShardWriter(const TokenShardWriter&) = delete;
  TokenShardWriter& operator=(const TokenShardWriter&) = delete;

  void append(std::span<const int32_t> tokens);
  void finish();  // Error if there are no tokens

 private:
  std::filesystem::path path_;
  ShardFormat format_;
  Sha256Digest tokenizer_;
  uint64_t count_ = 0;
  std::vector<uint16_t> words_;
  AtomicFile file_;
};

}  // namespace quern::data
