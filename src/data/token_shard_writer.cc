#include "data/token_shard_writer.h"

#include <array>
#include <cassert>
#include <cstring>
#include <limits>
#include <string>
#include <utility>

#include "core/error.h"

namespace quern::data {
namespace {

constexpr uint64_t kMaxTokens = std::numeric_limits<int32_t>::max();  // limit of the llm.c header

std::string header(uint64_t tokens, const Sha256Digest& tokenizer) {
  std::array<int32_t, kShardHeaderInts> ints = {};
  static_assert(sizeof ints == kShardHeaderBytes);
  ints[0] = kShardMagic;
  ints[1] = kShardVersion;
  ints[2] = static_cast<int32_t>(tokens);
  std::memcpy(reinterpret_cast<char*>(ints.data()) + kShardDigestAt, tokenizer.data(), tokenizer.size());
  return {reinterpret_cast<const char*>(ints.data()), sizeof ints};
}

}  // namespace

TokenShardWriter::TokenShardWriter(std::filesystem::path path, ShardFormat format, const Sha256Digest& tokenizer)
    : path_(std::move(path)), format_(format), tokenizer_(tokenizer), file_((remove_leftovers_of(path_), path_)) {
  assert(format != ShardFormat::kDetect);
  if (format_ == ShardFormat::kLlmC) file_.writer().write(header(0, tokenizer_));
}

void TokenShardWriter::append(std::span<const int32_t> tokens) {
  if (format_ == ShardFormat::kLlmC && tokens.size() > kMaxTokens - count_) {
    throw Error("[data] {}: expected at most {} tokens in a shard", path_.string(), kMaxTokens);
  }
  words_.clear();
  for (const int32_t token : tokens) {
    if (token < 0 || token > std::numeric_limits<uint16_t>::max()) {
      throw Error("[data] {}: token {}: expected an id from 0 to 65535, found {}", path_.string(),
                  count_ + words_.size(), token);
    }
    words_.push_back(static_cast<uint16_t>(token));
  }
  file_.writer().write(std::as_bytes(std::span(words_)));
  count_ += words_.size();
}

void TokenShardWriter::finish() {
  if (count_ == 0) throw Error("[data] {}: expected at least 1 token to write, found 0", path_.string());
  if (format_ == ShardFormat::kLlmC) file_.writer().rewrite_start(header(count_, tokenizer_));
  file_.commit();
}

}  // namespace quern::data
