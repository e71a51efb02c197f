#include "data/token_shard_writer.h"

#include <unistd.h>

#include <array>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <limits>
#include <system_error>
#include <utility>

#include "core/error.h"
#include "core/files.h"

namespace quern::data {
namespace {

constexpr uint64_t kMaxTokens = std::numeric_limits<int32_t>::max();  // limit of the llm.c header

}  // namespace

TokenShardWriter::TokenShardWriter(std::filesystem::path path, ShardFormat format, const Sha256Digest& tokenizer)
    : path_(std::move(path)), partial_(path_.string() + ".partial"), format_(format), tokenizer_(tokenizer) {
  assert(format != ShardFormat::kDetect);
  file_.reset(std::fopen(partial_.c_str(), "wb"));
  if (!file_) fail("create");
  if (format_ == ShardFormat::kLlmC) write_header();  // finish() writes the count
}

TokenShardWriter::~TokenShardWriter() {
  if (!file_) return;
  file_.reset();
  std::error_code ignored;
  std::filesystem::remove(partial_, ignored);
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
  write(words_.data(), words_.size() * sizeof(uint16_t));
  count_ += words_.size();
}

void TokenShardWriter::finish() {
  assert(file_ && "finish() was called before");
  if (count_ == 0) throw Error("[data] {}: expected at least 1 token to write, found 0", path_.string());
  if (format_ == ShardFormat::kLlmC) {
    if (std::fseek(file_.get(), 0, SEEK_SET) != 0) fail("write");
    write_header();
  }
  if (std::fflush(file_.get()) != 0 || ::fsync(::fileno(file_.get())) != 0) fail("write");
  std::error_code error;
  std::filesystem::rename(partial_, path_, error);
  if (error) throw Error("[data] {}: cannot rename from {}: {}", path_.string(), partial_.string(), error.message());
  file_.reset();
  sync_folder(path_.parent_path());
}

void TokenShardWriter::write_header() {
  std::array<int32_t, kShardHeaderInts> ints = {};
  ints[0] = kShardMagic;
  ints[1] = kShardVersion;
  ints[2] = static_cast<int32_t>(count_);
  std::memcpy(reinterpret_cast<char*>(ints.data()) + kShardDigestAt, tokenizer_.data(), tokenizer_.size());
  write(ints.data(), kShardHeaderBytes);
}

void TokenShardWriter::write(const void* bytes, size_t count) {
  if (count > 0 && std::fwrite(bytes, 1, count, file_.get()) != count) fail("write");
}

void TokenShardWriter::fail(const char* what) const {
  throw Error("[data] {}: cannot {}: {}", partial_.string(), what, std::generic_category().message(errno));
}

}  // namespace quern::data
