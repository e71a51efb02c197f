// Tokenizers through the public header.
#include <gtest/gtest.h>
#include <quern/tokenizer.h>

#include <fstream>
#include <string>

#include "support/message.h"
#include "support/temporary_folder.h"

namespace {

using quern::test::message_of;
using quern::test::TemporaryFolder;

std::filesystem::path text_in(const TemporaryFolder& folder) {
  std::ofstream file(folder / "text.txt");
  for (int i = 0; i < 200; ++i) file << "the quick brown fox and the lazy dog\n";
  return folder / "text.txt";
}

TEST(PublicTokenizer, EveryKindRoundTrips) {
  const TemporaryFolder folder;
  const std::filesystem::path text = text_in(folder);
  for (const std::string kind : {"byte", "char", "bpe"}) {
    const auto tokenizer = quern::Tokenizer::train({text}, {.kind = kind, .vocabulary = 300});
    EXPECT_EQ(tokenizer.kind(), kind);
    EXPECT_EQ(tokenizer.decode(tokenizer.encode("the fox")), "the fox");
    EXPECT_EQ(tokenizer.end_of_text().has_value(), kind == "bpe");
  }
}

TEST(PublicTokenizer, LoadsFromAFileOrItsFolder) {
  const TemporaryFolder folder;
  const auto tokenizer = quern::Tokenizer::train({text_in(folder)}, {.vocabulary = 280});
  tokenizer.save(folder / "tokenizer.json");
  for (const std::filesystem::path& path : {folder / "tokenizer.json", folder.path()}) {
    const quern::Tokenizer loaded = quern::Tokenizer::load(path);
    EXPECT_EQ(loaded.vocabulary_size(), tokenizer.vocabulary_size());
    EXPECT_EQ(loaded.encode("the lazy dog"), tokenizer.encode("the lazy dog"));
  }
}

TEST(PublicTokenizer, BadInputIsAnErrorThatSaysWhatWasExpected) {
  const TemporaryFolder folder;
  const std::filesystem::path text = text_in(folder);
  EXPECT_NE(message_of([&] { quern::Tokenizer::train({text}, {.kind = "words"}); }).find("byte, char or bpe"),
            std::string::npos);
  EXPECT_THROW(quern::Tokenizer::train({}), quern::Error);
  EXPECT_THROW(quern::Tokenizer::train({text}, {.vocabulary = 3}), quern::Error);
  EXPECT_THROW(quern::Tokenizer::load(folder / "absent.json"), quern::Error);
  const auto characters = quern::Tokenizer::train({text}, {.kind = "char"});
  EXPECT_THROW(characters.encode("THE"), quern::Error);
  EXPECT_THROW(characters.decode(std::vector<int32_t>{9999}), quern::Error);
}

}  // namespace
