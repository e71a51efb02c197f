// What a run learns from: where documents end, and which files are taken.
#include "dataset/dataset.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/error.h"
#include "data/bpe_trainer.h"
#include "data/files.h"
#include "data/text_tokens.h"
#include "data/token_shard_writer.h"
#include "dataset/data_kind.h"

namespace quern::train {
namespace {

namespace fs = std::filesystem;
using test::contains;
using test::error_of;
using Tokens = std::vector<int32_t>;

class DatasetTest : public ::testing::Test {
 protected:
  RunConfig config(const std::vector<fs::path>& paths, TokenizerKind kind = TokenizerKind::kBpe) const {
    RunConfig config;
    config.model.context = 2;
    for (const fs::path& path : paths) config.data.paths.push_back(path.string());
    config.data.tokenizer = kind;
    config.data.vocabulary = 300;
    config.data.validation_fraction = 0;  // the texts are a few words
    return config;
  }
  Dataset open(const RunConfig& config) {
    warnings_.clear();
    return open_dataset(config, folder_.path() / "none.json",
                        {.warn = [this](const std::string& text) { warnings_.push_back(text); }});
  }
  static Tokens tokens_of(const data::TokenStream& stream) {
    Tokens tokens(stream.size());
    stream.copy(0, tokens.size(), tokens.data());
    return tokens;
  }
  // The text with "#" for every end of text.
  static std::string shown(const Dataset& dataset, const Tokens& tokens) {
    std::string text;
    for (const int32_t token : tokens) {
      text += token == dataset.tokenizer->end_of_text() ? "#" : dataset.tokenizer->bytes_of(token);
    }
    return text;
  }
  std::string shown(const RunConfig& config) {
    const Dataset dataset = open(config);
    return shown(dataset, tokens_of(*dataset.stream));
  }

  test::Folder folder_;
  std::vector<std::string> warnings_;
};

// They ran together before: no model could learn where a document ends.
TEST_F(DatasetTest, EndOfTextFollowsEveryDocument) {
  const fs::path lines = folder_.write("a.jsonl", "{\"text\": \"One day.\"}\n{\"text\": \"\"}\n{\"text\": \"Two.\"}\n");
  EXPECT_EQ(shown(config({lines})), "One day.#Two.#");
  folder_.write("texts/a.txt", "First\n");
  folder_.write("texts/b/c.md", "Second");
  EXPECT_EQ(shown(config({folder_.path() / "texts"})), "First\n#Second#");
  EXPECT_EQ(shown(config({folder_.path() / "texts" / "a.txt", lines})), "First\n#One day.#Two.#");
  EXPECT_EQ(shown(config({folder_.path() / "texts" / "a.txt"})), "First\n#");
  EXPECT_TRUE(warnings_.empty());
}

TEST_F(DatasetTest, StreamHasTheSameEndsOfText) {
  const fs::path lines =
      folder_.write("a.jsonl", "{\"text\": \"One day.\"}\n{\"text\": \"Two.\"}\n{\"text\": \"3.\"}\n");
  RunConfig stream = config({folder_.write("a.txt", "First\n"), lines});
  stream.data.sampling = Sampling::kStream;
  const Dataset dataset = open(stream);
  std::string text;
  Tokens tokens;
  data::TextPieces::Raw raw;
  data::PieceCursor cursor(*dataset.sources[0].text);
  for (uint64_t piece = 0; piece < dataset.sources[0].text->count(); ++piece) {
    cursor.next(raw);
    data::tokens_of_piece(raw, *dataset.tokenizer, tokens);
    text += shown(dataset, tokens);
  }
  EXPECT_EQ(text, "First\n#One day.#Two.#3.#");
}

TEST_F(DatasetTest, NameOfTheEndOfTextInADocumentIsText) {
  EXPECT_EQ(shown(config({folder_.write("a.txt", "A <|endoftext|> B")})), "A <|endoftext|> B#");
  const Dataset dataset = open(config({folder_.path() / "a.txt"}));
  EXPECT_EQ(tokens_of(*tokenise(*dataset.tokenizer, {folder_.path() / "a.txt"}).stream), tokens_of(*dataset.stream));
}

TEST_F(DatasetTest, VocabularyHasTheRequestedSize) {
  std::string text;
  for (int i = 0; i < 500; ++i) text += "word" + std::to_string(i * i) + " ";
  RunConfig wanted = config({folder_.write("a.txt", text)});
  for (const Sampling sampling : {Sampling::kRandom, Sampling::kStream}) {
    wanted.data.sampling = sampling;
    const Dataset dataset = open(wanted);
    EXPECT_EQ(dataset.tokenizer->vocabulary_size(), 300);
    EXPECT_EQ(dataset.tokenizer->end_of_text(), 299);
  }
}

// byte and char have no token for it; then at least a line says so, once, when a run starts.
TEST_F(DatasetTest, WarnsThatDocumentsAreNotSeparated) {
  const fs::path lines = folder_.write("a.jsonl", "{\"text\": \"One day.\"}\n{\"text\": \"Two.\"}\n");
  const fs::path text = folder_.write("a.txt", "A single text.");
  for (const TokenizerKind kind : {TokenizerKind::kByte, TokenizerKind::kChar}) {
    for (const Sampling sampling : {Sampling::kRandom, Sampling::kStream}) {
      RunConfig several = config({lines}, kind), one = config({text}, kind);
      several.data.sampling = one.data.sampling = sampling;
      open(several);
      ASSERT_EQ(warnings_.size(), 1u);
      EXPECT_TRUE(contains(warnings_[0], "a.jsonl: documents are not separated"));
      open(one).tokenizer->save((folder_.path() / "known.json").string());
      EXPECT_TRUE(warnings_.empty());
    }
  }
  std::vector<std::string> warnings;  // a tokenizer that is given rather than learned changes nothing
  open_dataset(config({text, text}, TokenizerKind::kChar), folder_.path() / "known.json",
               {.warn = [&](const std::string& warning) { warnings.push_back(warning); }});
  EXPECT_EQ(warnings.size(), 1u);
}

TEST_F(DatasetTest, TellsWhatWasSkippedAndConverted) {
  folder_.write("texts/a.txt", "One\r\nday.");
  folder_.write("texts/b.txt", "Two\r\ndays.");
  folder_.write("texts/c.txt", "\xEF\xBB\xBFThree.");
  folder_.write("texts/d.png", "x");
  for (const Sampling sampling : {Sampling::kRandom, Sampling::kStream}) {
    RunConfig several = config({folder_.path() / "texts"});
    several.data.sampling = sampling;
    open(several);
    ASSERT_EQ(warnings_.size(), 3u);
    EXPECT_TRUE(contains(warnings_[0], "texts: skipped 1 file: .png (1): not text by name"));
    EXPECT_TRUE(contains(warnings_[1], "c.txt: removed the byte order mark"));
    EXPECT_TRUE(contains(warnings_[2], "a.txt and 1 other file: replaced CR LF by LF"));
  }
  EXPECT_EQ(shown(config({folder_.path() / "texts"})), "One\nday.#Two\ndays.#Three.#");
}

TEST_F(DatasetTest, OpensSeveralSourcesWithTheirWeights) {
  RunConfig mixture = config({}, TokenizerKind::kByte);
  mixture.data.sources = {folder_.write("a b.txt", std::string(100, 'a')).string() + " 3",
                          folder_.write("b.jsonl", "{\"text\": \"bbbbbbbbbb\"}\n").string() + " 0.5"};
  mixture.data.validation_fraction = 0.4;
  const Dataset dataset = open(mixture);
  ASSERT_EQ(dataset.sources.size(), 2u);
  EXPECT_EQ(dataset.sources[0].weight, 3);
  EXPECT_EQ(dataset.sources[1].weight, 0.5);
  EXPECT_EQ(dataset.sources[0].split.validation.size(), 40u);
  EXPECT_EQ(dataset.sources[1].split.train.size(), 6u);
  EXPECT_EQ(dataset.validation_tokens(), 44u);
  EXPECT_TRUE(dataset.has_position());
  mixture.data.validation_fraction = 0.1;  // one token of the second source
  EXPECT_TRUE(contains(error_of([&] { open(mixture); }), "b.jsonl: held-out text: expected at least 3 tokens"));
}

// A mixture draws from each source, so it matters where one ends; a resumed run took such text for the same that moved.
TEST_F(DatasetTest, SourcesThatAreDividedElsewhereAreOtherData) {
  for (const char* file : {"1/a/x.txt", "1/a/y.txt", "1/b/z.txt", "2/a/x.txt", "2/b/y.txt", "2/b/z.txt"}) {
    folder_.write(file, std::string(100, 'a'));
  }
  for (const Sampling sampling : {Sampling::kRandom, Sampling::kStream}) {
    RunConfig mixture = config({}, TokenizerKind::kByte);
    mixture.data.sampling = sampling;
    const auto fingerprint_of = [&](const char* folder) {
      const fs::path root = folder_.path() / folder;
      mixture.data.sources = {(root / "a").string() + " 1", (root / "b").string() + " 1"};
      return open_dataset(mixture, {}).fingerprint;
    };
    const data::Fingerprint first = fingerprint_of("1"), second = fingerprint_of("2");
    EXPECT_EQ(first.tokens, second.tokens);
    EXPECT_NE(first.hash, second.hash);
  }
}

// One .bin made the folder token shards, and the book was left out without a word.
TEST_F(DatasetTest, RefusesAFolderWithTextAndShards) {
  folder_.write("both/sub/book.txt", "A book.");
  folder_.write("both/model.bin", "not tokens");
  const fs::path both = folder_.path() / "both";
  EXPECT_TRUE(contains(error_of([&] { open(config({both})); }),
                       "both: expected text or token shards, found both (sub/book.txt and model.bin)"));
  EXPECT_EQ(shown(config({both / "sub"})), "A book.#");
}

TEST_F(DatasetTest, RefusesTextAndShardsTogether) {
  const fs::path text = folder_.write("a.txt", "Some text."), shard = folder_.write("a.BIN", "\1\2\3\4\5\6");
  EXPECT_TRUE(contains(error_of([&] { open(config({text, shard})); }), "a.txt is text, "));
  EXPECT_TRUE(contains(error_of([&] { tokenise(*open(config({text})).tokenizer, {shard}); }),
                       "a.BIN: expected text, found token shards"));
  EXPECT_TRUE(contains(error_of([&] { learn_tokenizer(TokenizerKind::kByte, 300, {shard}); }), "found token shards"));
}

// `quern tokenize` killed between its two files, in a folder with those of an earlier one.
TEST_F(DatasetTest, RefusesShardsOfAnotherTokenizer) {
  const auto learn = [](const char* text) {
    data::BpeTrainer trainer;
    trainer.add(text);
    return trainer.train(data::with_end_of_text(300));
  };
  const auto mine = learn("abab abab abab"), other = learn("cdcd cdcd cdcd");
  data::TokenShardWriter writer(folder_.path() / "tokens.bin", data::ShardFormat::kLlmC, mine->digest());
  writer.append(Tokens(50, 3));
  writer.finish();
  const auto save = [&](const data::Tokenizer& tokenizer) {
    tokenizer.save((folder_.path() / "tokenizer.json").string());
  };
  save(*mine);
  EXPECT_EQ(open(config({folder_.path()})).stream->size(), 50u);
  save(*other);
  EXPECT_TRUE(contains(error_of([&] { open(config({folder_.path()})); }), "found those of another tokenizer"));
}

}  // namespace
}  // namespace quern::train
