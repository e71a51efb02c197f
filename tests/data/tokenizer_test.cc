#include "data/tokenizer.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <set>

#include "data/byte_alphabet.h"
#include "data/byte_tokenizer.h"
#include "data/char_tokenizer.h"
#include "data/utf8.h"
#include "support/child_process.h"
#include "support/temporary_folder.h"
#include "tests/data/tokenizer_support.h"

namespace quern::data {
namespace {

using test::error_of;
using Ids = std::vector<int32_t>;

TEST(ByteAlphabet, IsGpt2s) {
  EXPECT_EQ(to_alphabet(" a\n"), "\u0120a\u010a");
  EXPECT_EQ(to_alphabet("\x7f\xa1\xad\xff"), "\u0121\u00a1\u0143\u00ff");
  EXPECT_EQ(to_alphabet(std::string(1, '\0')), "\u0100");
  EXPECT_EQ(bytes_in_alphabet_order()[0], '!');
  EXPECT_EQ(bytes_in_alphabet_order()[188], 0);
  EXPECT_EQ(bytes_in_alphabet_order()[220], ' ');  // ids of GPT-2
}

TEST(ByteAlphabet, RoundTripsEveryByte) {
  const std::string bytes = test::random_bytes(10000, 1);
  EXPECT_EQ(from_alphabet(to_alphabet(bytes)), bytes);
  EXPECT_EQ(from_alphabet("a b"), std::nullopt);
  EXPECT_EQ(from_alphabet("\u00ad"), std::nullopt);
  EXPECT_EQ(from_alphabet("\u0144"), std::nullopt);
  EXPECT_EQ(from_alphabet("\xff"), std::nullopt);
}

TEST(ByteTokenizer, IdsAreBytes) {
  const ByteTokenizer tokenizer;
  EXPECT_EQ(tokenizer.vocabulary_size(), 256);
  EXPECT_EQ(tokenizer.encode("a\xff"), (Ids{97, 255}));
  const std::string bytes = test::random_bytes(100000, 2);
  EXPECT_EQ(tokenizer.decode(tokenizer.encode(bytes)), bytes);
}

TEST(CharTokenizer, IdsAreInOrderOfCodePoints) {
  const auto tokenizer = CharTokenizer::from_text("b\u00e9a\nb\U0001f600", "text");
  EXPECT_EQ(tokenizer->vocabulary_size(), 5);
  EXPECT_EQ(tokenizer->encode("\nab\u00e9\U0001f600"), (Ids{0, 1, 2, 3, 4}));
  EXPECT_EQ(tokenizer->decode(Ids{4, 3, 0}), "\U0001f600\u00e9\n");
}

TEST(CharTokenizer, UnknownCharacterIsNamed) {
  const auto tokenizer = CharTokenizer::from_text("abc", "text");
  EXPECT_EQ(error_of([&] { tokenizer->encode("ab\u00e9"); }),
            "[tokenizer] text: byte 2: expected one of the 3 characters of the vocabulary, found \"\u00e9\" (U+00E9); "
            "leave them out, or use the byte or bpe tokenizer, which take any text");
  EXPECT_NE(error_of([&] { tokenizer->encode("ab\xff"); }).find("byte 2: expected UTF-8, found byte 0xff"),
            std::string::npos);
  EXPECT_NE(error_of([&] {
              tokenizer->encode("xaxyxzuvw");
            }).find("found \"x\" (U+0078), \"y\" (U+0079), \"z\" (U+007A), \"u\" (U+0075), \"v\" (U+0076) and others;"),
            std::string::npos);
  Ids ids = {7};
  EXPECT_THROW(tokenizer->encode_to("abx", ids), Error);
  EXPECT_EQ(ids, Ids{7});
}

TEST(CharTokenizer, InvalidUtf8IsReportedWithItsOffset) {
  EXPECT_EQ(error_of([] { CharTokenizer::from_text("abc\xc3(", "a.txt"); }),
            "[tokenizer] a.txt: byte 3: expected UTF-8, found byte 0xc3");
  EXPECT_EQ(error_of([] { CharTokenizer::from_text("", "a.txt"); }),
            "[tokenizer] a.txt: expected at least one character, found none");
}

TEST(CharTokenizer, HoldsAtMost65535Characters) {
  std::string text;
  for (uint32_t value = 0x10000; value < 0x10000 + 65535; ++value) append_utf8(value, text);
  const auto tokenizer = CharTokenizer::from_text(text, "text");
  EXPECT_EQ(tokenizer->vocabulary_size(), 65535);
  EXPECT_EQ(tokenizer->decode(tokenizer->encode(text)), text);
  EXPECT_EQ(error_of([&] { CharTokenizer::from_text(text + "a", "text"); }),
            "[tokenizer] text: expected at most 65535 different characters, found 65536");
}

TEST(CharTokenizer, BuilderCollectsOverTexts) {
  CharTokenizerBuilder builder;
  EXPECT_THROW(builder.build("texts"), Error);
  builder.add("cb", "1");
  builder.add("ad", "2");
  EXPECT_EQ(builder.build("texts")->decode(Ids{0, 1, 2, 3}), "abcd");
}

TEST(Tokenizer, DecodeRejectsIdsOutsideTheVocabulary) {
  const ByteTokenizer tokenizer;
  EXPECT_EQ(error_of([&] {
              tokenizer.decode(Ids{1, 256});
            }),
            "[tokenizer] position 1: expected an id from 0 to 255, found 256");
  EXPECT_EQ(error_of([&] { tokenizer.bytes_of(-1); }), "[tokenizer] expected an id from 0 to 255, found -1");
}

class TokenizerFile : public testing::Test {
 protected:
  TokenizerFile() { std::filesystem::create_directories(folder_); }
  ~TokenizerFile() override { std::filesystem::remove_all(folder_); }
  std::string path(const std::string& name) const { return folder_ / name; }

 private:
  std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / fmt::format("quern-tokenizer-{}", ::getpid());
};

TEST_F(TokenizerFile, RoundTrips) {
  const auto tokenizer = CharTokenizer::from_text("hello \"\\\n\u00e9", "text");
  tokenizer->save(path("t.json"));
  const auto loaded = Tokenizer::load(path("t.json"));
  EXPECT_EQ(loaded->name(), "char");
  EXPECT_EQ(loaded->to_json(), tokenizer->to_json());
  EXPECT_EQ(quern::test::names_in(path("")), std::set<std::string>{"t.json"});
}

// However its file is written: tokens on disk are compared with it.
TEST_F(TokenizerFile, DigestDistinguishesTokenizers) {
  const auto one = CharTokenizer::from_text("abc", "text");
  const auto same = Tokenizer::from_json(one->to_json() + "  \n", "text");
  EXPECT_EQ(one->digest(), same->digest());
  EXPECT_NE(one->digest(), CharTokenizer::from_text("abd", "text")->digest());
  EXPECT_NE(one->digest(), CharTokenizer::from_text("ab", "text")->digest());
  EXPECT_NE(one->digest(), ByteTokenizer().digest());
}

TEST_F(TokenizerFile, ErrorsNameTheFile) {
  EXPECT_EQ(error_of([&] { Tokenizer::load(path("none.json")); }),
            "[tokenizer] " + path("none.json") + ": cannot be opened: No such file or directory");
  EXPECT_NE(error_of([&] { Tokenizer::load(path("")); }).find("expected a file"), std::string::npos);
  std::ofstream(path("empty.json")).flush();
  EXPECT_EQ(error_of([&] { Tokenizer::load(path("empty.json")); }),
            "[tokenizer] " + path("empty.json") + ": expected JSON, found a syntax error at byte 1");
  EXPECT_NE(error_of([&] { ByteTokenizer().save(path("no/t.json")); }).find("t.json: cannot create: No such file"),
            std::string::npos);
}

TEST_F(TokenizerFile, FullDiskLeavesTheOldFile) {
  ByteTokenizer().save(path("t.json"));
  const auto other = CharTokenizer::from_text("ab", "text");
  const int code = quern::test::run_in_child([&] {
    quern::test::limit_file_size(100);
    const std::string error = error_of([&] { other->save(path("t.json")); });
    return error.find("t.json: cannot write more than 100 bytes: File too large") != std::string::npos ? 0 : 1;
  });
  EXPECT_EQ(code, 0);
  EXPECT_EQ(Tokenizer::load(path("t.json"))->name(), "byte");
}

// It was written to t.json.partial first, whatever was there.
TEST_F(TokenizerFile, SavingTouchesNoOtherFile) {
  std::ofstream(path("precious")) << "thesis";
  std::filesystem::create_symlink("precious", path("t.json.partial"));
  ByteTokenizer().save(path("t.json"));
  EXPECT_EQ(std::filesystem::file_size(path("precious")), 6u);
  EXPECT_EQ(quern::test::names_in(path("")), (std::set<std::string>{"precious", "t.json", "t.json.partial"}));
  EXPECT_NE(error_of([&] { ByteTokenizer().save("/dev/null"); }).find("expected a regular file"), std::string::npos);
}

}  // namespace
}  // namespace quern::data
