#include "data/fingerprint.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "data/token_buffer.h"

namespace quern::data {
namespace {

// Tokens in memory that need not be there: a function of the position, but for one that is changed.
class Made : public TokenStream {
 public:
  explicit Made(uint64_t size, uint64_t changed = UINT64_MAX) : size_(size), changed_(changed) {}
  uint64_t size() const override { return size_; }
  void copy(uint64_t position, size_t count, int32_t* out) const override {
    ASSERT_LE(position + count, size_);
    for (size_t i = 0; i < count; ++i) {
      const uint64_t at = position + i;
      out[i] = static_cast<int32_t>(at * at % 1009 + (at == changed_ ? 1 : 0));
    }
  }

 private:
  uint64_t size_, changed_;
};

TEST(Fingerprint, DependsOnEveryTokenAndTheSize) {
  for (const uint64_t size : {1, 7, 8, 9, 1023, 1024, 1025, 3000}) {
    std::set<uint64_t> hashes = {fingerprint(Made(size)).hash};
    for (uint64_t at = 0; at < size; ++at) hashes.insert(fingerprint(Made(size, at)).hash);
    EXPECT_EQ(hashes.size(), size + 1);
    EXPECT_EQ(fingerprint(Made(size)).tokens, size);
  }
  EXPECT_NE(fingerprint(Made(100)), fingerprint(Made(101)));
  EXPECT_EQ(fingerprint(Made(0)).tokens, 0u);
}

TEST(Fingerprint, DependsOnTheOrder) {
  std::set<uint64_t> hashes;
  for (const std::vector<int32_t>& tokens : {std::vector<int32_t>{1, 2, 3}, {1, 3, 2}, {3, 2, 1}, {2, 1, 3}}) {
    TokenBuffer buffer(10);
    buffer.append(tokens);
    hashes.insert(fingerprint(buffer).hash);
  }
  EXPECT_EQ(hashes.size(), 4u);
}

// Known by heart of old checkpoints: another value would make them refuse their data.
TEST(Fingerprint, DoesNotChangeBetweenVersions) {
  TokenBuffer buffer(1000);
  for (int32_t i = 0; i < 1000; ++i) buffer.append({&i, 1});
  EXPECT_EQ(fingerprint(buffer).hash, 10079502405380646790u);
}

TEST(Fingerprint, OfALongStreamCoversBothEnds) {
  const uint64_t size = 1000 * kFingerprintWhole + 12345;
  const Fingerprint whole = fingerprint(Made(size));
  EXPECT_NE(fingerprint(Made(size, 0)), whole);
  EXPECT_NE(fingerprint(Made(size, size - 1)), whole);
  EXPECT_NE(fingerprint(Made(size + 1)), whole);
}

// Notes what is read.
class Watched : public TokenStream {
 public:
  explicit Watched(uint64_t size) : size_(size) {}
  uint64_t size() const override { return size_; }
  void copy(uint64_t position, size_t count, int32_t* out) const override {
    read.emplace_back(position, position + count);
    std::fill_n(out, count, 1);
  }
  mutable std::vector<std::pair<uint64_t, uint64_t>> read;

 private:
  uint64_t size_;
};

// Beyond 2^27 tokens, exactly the changes that docs/formats.md lists are detected.
TEST(Fingerprint, OfALongStreamReadsEvenlySpacedPieces) {
  const uint64_t size = 1000 * kFingerprintWhole + 12345;
  const Watched stream(size);
  fingerprint(stream);
  ASSERT_EQ(stream.read.size(), 4097u);
  EXPECT_EQ(stream.read.front().first, 0u);
  EXPECT_EQ(stream.read.back().second, size);
  for (size_t i = 0; i < stream.read.size(); ++i) {
    EXPECT_EQ(stream.read[i].second - stream.read[i].first, 1024u);
    EXPECT_LE(stream.read[i].first - (i == 0 ? 0 : stream.read[i - 1].first), size / 4096 + 1);
  }
  EXPECT_EQ(fingerprint(Made(size, 5000)), fingerprint(Made(size)));
}

TextSources texts(const std::vector<std::string>& list) {
  TextSources sources;
  for (const std::string& text : list) sources.push_back(std::make_shared<TextSource>("text", text));
  return sources;
}

TEST(Fingerprint, OfTextDependsOnEveryByteFileEndsAndTokenizer) {
  const std::string text = "Once upon a time.";
  std::set<uint64_t> hashes = {fingerprint(texts({text}), "{}").hash};
  for (size_t i = 0; i < text.size(); ++i) {
    std::string other = text;
    other[i] = static_cast<char>(other[i] ^ 1);
    hashes.insert(fingerprint(texts({other}), "{}").hash);
  }
  hashes.insert(fingerprint(texts({"Once upon", " a time."}), "{}").hash);
  hashes.insert(fingerprint(texts({"Once upon ", "a time."}), "{}").hash);
  hashes.insert(fingerprint(texts({text}), "{\"a\": 1}").hash);
  EXPECT_EQ(hashes.size(), text.size() + 4);
  EXPECT_EQ(fingerprint(texts({text}), "{}"), fingerprint(texts({text}), "{}"));
  EXPECT_EQ(fingerprint(texts({text}), "{}").tokens, text.size());
}

}  // namespace
}  // namespace quern::data
