// Writes token shards for llm.c or nanoGPT; token_shards.h describes the formats.
#pragma once

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <span>
#include <vector>

#include "data/token_shards.h"

namespace quern::data {

// When finish() returns, the file exists under its name, complete and durable. Until then, and after an Error, there is
// only PATH.partial, which the destructor removes. Every failure (missing directory, full disk, id above 65,535, more
// tokens than an llm.c header can count) is an Error naming the file.
class TokenShardWriter {
 public:
  // `tokenizer` is the tokenizer's digest, for the header of the llm.c format; zeros if unknown.
  explicit TokenShardWriter(std::filesystem::path path, ShardFormat format = ShardFormat::kLlmC,
                            const Sha256Digest& tokenizer = {});
  TokenShardWriter(const TokenShardWriter&) = delete;
  TokenShardWriter& operator=(const TokenShardWriter&) = delete;
  ~TokenShardWriter();

  void append(std::span<const int32_t> tokens);
  void finish();  // Error if there are no tokens

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };

  void write(const void* bytes, size_t count);
  void write_header();
  [[noreturn]] void fail(const char* what) const;

  std::filesystem::path path_;
  std::filesystem::path partial_;
  ShardFormat format_;
  Sha256Digest tokenizer_;
  uint64_t count_ = 0;
  std::vector<uint16_t> words_;
  std::unique_ptr<std::FILE, Close> file_;
};

}  // namespace quern::data
