#include "data/token_shards.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <numeric>
#include <set>

#include "data/files.h"
#include "data/token_shard_writer.h"
#include "support/child_process.h"

namespace quern::data {
namespace {

namespace fs = std::filesystem;
using test::contains;
using test::error_of;
using Tokens = std::vector<int32_t>;

// The format as llm.c's data scripts write it, made without our writer.
std::string llm_c_bytes(const std::vector<uint16_t>& tokens) {
  std::vector<int32_t> header(256, 0);
  header[0] = 20240520;
  header[1] = 1;
  header[2] = static_cast<int32_t>(tokens.size());
  std::string bytes(1024 + 2 * tokens.size(), '\0');
  std::memcpy(bytes.data(), header.data(), 1024);
  if (!tokens.empty()) std::memcpy(bytes.data() + 1024, tokens.data(), 2 * tokens.size());
  return bytes;
}

std::string raw_bytes(const std::vector<uint16_t>& tokens) {
  return {reinterpret_cast<const char*>(tokens.data()), 2 * tokens.size()};
}

std::string with_header_int(std::string bytes, size_t index, int32_t value) {
  std::memcpy(bytes.data() + 4 * index, &value, 4);
  return bytes;
}

std::string read_all(const fs::path& path) {
  const MappedFile file(path);
  return std::string(file.text());
}

Tokens tokens_of(const TokenStream& stream, uint64_t position, size_t count) {
  Tokens tokens(count);
  stream.copy(position, count, tokens.data());
  return tokens;
}

std::string error_in(const std::string& bytes, ShardFormat format = ShardFormat::kDetect) {
  return error_of([&] { find_shard_tokens(bytes, "a.bin", format); });
}

TEST(TokenShards, ReadsBothFormats) {
  const test::Folder folder;
  const TokenShards llm_c({folder.write("a.bin", llm_c_bytes({5, 50256, 0}))}, 50257);
  const TokenShards raw({folder.write("b.bin", raw_bytes({5, 50256, 0}))}, 50257);
  for (const TokenShards* shards : {&llm_c, &raw}) {
    EXPECT_EQ(shards->size(), 3u);
    EXPECT_EQ(tokens_of(*shards, 0, 3), (Tokens{5, 50256, 0}));
    EXPECT_EQ(tokens_of(*shards, 1, 1), Tokens{50256});
  }
}

TEST(TokenShards, ConcatenatesAFolderOrAListInOrder) {
  const test::Folder folder;
  const fs::path last = folder.write("c.bin", llm_c_bytes({6, 7}));
  const fs::path first = folder.write("a.bin", llm_c_bytes({1, 2, 3}));
  folder.write("b.bin", raw_bytes({4, 5}));
  folder.write("notes.txt", "not a shard");
  const TokenShards all({folder.path()}, 8);
  EXPECT_EQ(all.shards(), 3u);
  EXPECT_EQ(tokens_of(all, 0, 7), (Tokens{1, 2, 3, 4, 5, 6, 7}));
  for (size_t begin = 0; begin <= 7; ++begin) {
    for (size_t count = 0; begin + count <= 7; ++count) {
      Tokens expected(count);
      std::iota(expected.begin(), expected.end(), static_cast<int32_t>(begin) + 1);
      EXPECT_EQ(tokens_of(all, begin, count), expected);
    }
  }
  EXPECT_EQ(tokens_of(TokenShards({last, first}, 8), 0, 5), (Tokens{6, 7, 1, 2, 3}));
}

TEST(TokenShards, FindsATokenOutsideTheVocabularyBeforeItIsUsed) {
  const test::Folder folder;
  const TokenShards shards(
      {folder.write("a.bin", llm_c_bytes({1, 2})), folder.write("b.bin", llm_c_bytes({3, 4, 9, 5}))}, 9);
  EXPECT_EQ(tokens_of(shards, 0, 4), (Tokens{1, 2, 3, 4}));
  EXPECT_TRUE(contains(error_of([&] { tokens_of(shards, 1, 5); }),
                       "b.bin: token 2: expected an id below the vocabulary of 9, found 9"));
}

TEST(TokenShards, RejectsDamagedHeaders) {
  const std::string good = llm_c_bytes({1, 2, 3});
  EXPECT_EQ(error_in(good), "");
  EXPECT_EQ(error_in(with_header_int(good, 1, 2)), "[data] a.bin: header word 1: expected version 1, found 2");
  EXPECT_EQ(error_in(with_header_int(good, 2, 4)), "[data] a.bin: expected 1032 bytes for 4 tokens, found 1030 bytes");
  EXPECT_TRUE(contains(error_in(with_header_int(good, 2, -1)), "expected at least 1 token, found -1"));
  EXPECT_TRUE(contains(error_in(with_header_int(good, 2, INT32_MAX)), "for 2147483647 tokens"));
  EXPECT_TRUE(contains(error_in(llm_c_bytes({})), "expected at least 1 token, found 0"));
  EXPECT_TRUE(contains(error_in(good.substr(0, 1000)), "expected a header of 1024 bytes, found 1000"));
  EXPECT_TRUE(contains(error_in(good.substr(0, 1029)), "for 3 tokens, found 1029 bytes"));
  EXPECT_TRUE(contains(error_in(good + "x"), "for 3 tokens, found 1031 bytes"));
}

// Read as raw tokens these would be 512 tokens of header and train a model on noise.
TEST(TokenShards, BadMagicIsNotReadAsRawTokens) {
  const std::string good = llm_c_bytes({1, 2, 3});
  EXPECT_TRUE(contains(error_in(with_header_int(good, 0, 20240521)), "expected magic 20240520, found 20240521"));
  EXPECT_TRUE(contains(error_in(with_header_int(with_header_int(good, 0, 20240801), 1, 7)), "found 20240801"));
  EXPECT_TRUE(contains(error_in("\x01\x34\xd8\x88 and more."), "expected a header of 1024 bytes"));
}

TEST(TokenShards, RejectsEmptyRawFilesAndOddSizes) {
  EXPECT_TRUE(contains(error_in("abc"), "found an odd size of 3 bytes"));
  EXPECT_TRUE(contains(error_in(""), "found an empty file"));
  EXPECT_EQ(error_in(llm_c_bytes({1}), ShardFormat::kRaw16), "");
  EXPECT_TRUE(contains(error_in(std::string(2000, 'a'), ShardFormat::kLlmC), "expected magic"));
}

TEST(TokenShards, NamesMissingFilesAndEmptyFolders) {
  const test::Folder folder;
  const auto open = [](std::vector<fs::path> paths) { return error_of([&] { TokenShards shards(paths, 10); }); };
  EXPECT_TRUE(contains(open({folder.path() / "none.bin"}), "none.bin: cannot open"));
  EXPECT_TRUE(contains(open({folder.path()}), "expected token shards (*.bin), found none"));
  EXPECT_TRUE(contains(open({folder.write("empty.bin", "")}), "empty.bin: the file is empty"));
  EXPECT_TRUE(contains(open({}), "expected token shards, found none"));
}

TEST(TokenShardWriter, WritesTheBytesOfTheFormats) {
  const test::Folder folder;
  for (const ShardFormat format : {ShardFormat::kLlmC, ShardFormat::kRaw16}) {
    const fs::path path = folder.path() / "out.bin";
    TokenShardWriter writer(path, format);
    writer.append(Tokens{1, 65535});
    writer.append(Tokens{});
    writer.append(Tokens{7});
    writer.finish();
    const std::vector<uint16_t> tokens = {1, 65535, 7};
    EXPECT_EQ(read_all(path), format == ShardFormat::kLlmC ? llm_c_bytes(tokens) : raw_bytes(tokens));
  }
}

TEST(TokenShardWriter, LeavesNothingWithoutFinish) {
  const test::Folder folder;
  {
    TokenShardWriter writer(folder.path() / "out.bin");
    writer.append(Tokens{1});
    EXPECT_TRUE(contains(error_of([&] { writer.append(Tokens{2, 65536}); }), "out.bin: token 2: "));
    EXPECT_TRUE(contains(error_of([&] { writer.append(Tokens{-1}); }), "found -1"));
  }
  EXPECT_TRUE(fs::is_empty(folder.path()));
}

TEST(TokenShardWriter, ErrorsNameTheFile) {
  const test::Folder folder;
  EXPECT_TRUE(
      contains(error_of([&] { TokenShardWriter writer(folder.path() / "no" / "out.bin"); }), "cannot create: No such"));
  EXPECT_TRUE(contains(error_of([&] { TokenShardWriter(folder.path() / "out.bin").finish(); }), "at least 1 token"));
}

// Words that llm.c leaves at zero say which tokenizer made the tokens, so that those of another are refused.
TEST(TokenShardWriter, MarksTokensWithTheirTokenizer) {
  const test::Folder folder;
  const fs::path path = folder.path() / "out.bin";
  Sha256Digest digest;
  for (size_t i = 0; i < digest.size(); ++i) digest[i] = static_cast<uint8_t>(7 * i + 1);
  TokenShardWriter writer(path, ShardFormat::kLlmC, digest);
  writer.append(Tokens{1, 2});
  writer.finish();
  const std::string bytes = read_all(path);
  std::string plain = bytes;
  EXPECT_EQ(bytes.substr(32, 32), std::string(digest.begin(), digest.end()));
  plain.replace(32, 32, 32, '\0');
  EXPECT_EQ(plain, llm_c_bytes({1, 2}));

  const TokenShards shards({path}, 10);
  shards.check_tokenizer(digest, "t.json");
  ++digest[31];
  EXPECT_TRUE(contains(error_of([&] { shards.check_tokenizer(digest, "t.json"); }),
                       "out.bin: expected tokens of t.json, found those of another tokenizer"));
  TokenShards({folder.write("llm_c.bin", plain)}, 10).check_tokenizer(digest, "t.json");
  TokenShards({folder.write("raw.bin", raw_bytes({1, 2}))}, 10).check_tokenizer(digest, "t.json");
}

TEST(TokenShards, FileEndingsIgnoreCase) {
  const test::Folder folder;
  folder.write("A.BIN", raw_bytes({1, 2}));
  EXPECT_EQ(TokenShards({folder.path()}, 10).size(), 2u);
}

TEST(TokenShardWriter, FullDiskLeavesTheOldShard) {
  const test::Folder folder;
  const fs::path path = folder.write("out.bin", "old");
  const int code = test::run_in_child([&] {
    test::limit_file_size(2000);
    const std::string error = error_of([&] {
      TokenShardWriter writer(path);
      writer.append(Tokens(1000, 7));
      writer.finish();
    });
    return contains(error, "out.bin: cannot write more than 2000 bytes: File too large") ? 0 : 1;
  });
  EXPECT_EQ(code, 0);
  EXPECT_EQ(read_all(path), "old");
  EXPECT_EQ(test::names_in(folder.path()), std::set<std::string>{"out.bin"});
}

// Tokens used to be written to out.bin.partial, whatever was there, and a killed writer left that file for good.
TEST(TokenShardWriter, TouchesNothingButItsFileAndLeftoversOfKilledWriters) {
  const test::Folder folder;
  const fs::path path = folder.path() / "out.bin";
  folder.write("precious", "thesis");
  fs::create_symlink("precious", folder.path() / "out.bin.partial");
  const int code = test::run_in_child([&] {
    TokenShardWriter writer(path);
    _exit(7);  // as if it was killed: no destructor runs
    return 0;
  });
  EXPECT_EQ(code, 7);
  EXPECT_EQ(test::names_in(folder.path()).size(), 3u);
  TokenShardWriter writer(path);
  writer.append(Tokens{1, 2});
  writer.finish();
  EXPECT_EQ(test::names_in(folder.path()), (std::set<std::string>{"out.bin", "out.bin.partial", "precious"}));
  EXPECT_EQ(read_all(folder.path() / "precious"), "thesis");
}

TEST(TokenShards, MutatedShardsAreReadOrRejected) {
  std::mt19937 random(2);
  const std::string valid = llm_c_bytes({1, 2, 3, 4, 5, 6, 7, 8});
  int read = 0;
  int refused = 0;
  for (int i = 0; i < 20000; ++i) {
    // The header is where it can go wrong: half of the inputs are damaged in its first words.
    std::string bytes = valid;
    if (i % 2 == 0) bytes = with_header_int(bytes, random() % 3, static_cast<int32_t>(random() % 64) - 32);
    bytes = i % 4 == 0 ? bytes : test::mutated(bytes, random);
    const ShardFormat format = i % 3 == 0   ? ShardFormat::kDetect
                               : i % 3 == 1 ? ShardFormat::kLlmC
                                            : ShardFormat::kRaw16;
    try {
      const std::vector<char> exact(bytes.begin(), bytes.end());  // AddressSanitizer sees a read past it
      const ShardTokens found = find_shard_tokens({exact.data(), exact.size()}, "a.bin", format);
      Tokens out(found.count);
      widen(found.tokens, out.size(), out.data());
      EXPECT_GT(found.count, 0u);
      EXPECT_LE(2 * found.count, bytes.size());
      ++read;
    } catch (const Error& error) {
      ++refused;
      EXPECT_TRUE(contains(error.what(), "[data] a.bin: "));
    }
  }
  EXPECT_GT(read, 2000);
  EXPECT_GT(refused, 5000);
}

// Truncated while a run reads it: SIGBUS where a page was gone, silent zeros within a page.
TEST(TokenShards, TruncatedShardIsAnErrorWhenRead) {
  const test::Folder folder;
  for (const uint16_t token : {uint16_t{7}, uint16_t{300}}) {
    const std::vector<uint16_t> tokens(20'000, token);
    for (const off_t bytes : {off_t{0}, off_t{4096}, off_t{1024 + 39'000}}) {
      const fs::path path = folder.write("a.bin", llm_c_bytes(tokens));
      const TokenShards shards({path, folder.write("b.bin", llm_c_bytes({1, 2, 3}))}, 1000);
      EXPECT_EQ(tokens_of(shards, 19'990, 13).back(), 3);
      ASSERT_EQ(::truncate(path.c_str(), bytes), 0);
      EXPECT_TRUE(contains(error_of([&] { tokens_of(shards, 19'990, 13); }),
                           "a.bin: was truncated while in use: expected 41024 bytes, found " + std::to_string(bytes)));
      EXPECT_EQ(tokens_of(shards, 20'000, 3), (Tokens{1, 2, 3}));
    }
  }
}

}  // namespace
}  // namespace quern::data
