#include "chat/training_sequences.h"

#include <gtest/gtest.h>

#include "tests/chat/chat_support.h"
#include "tests/data/files.h"

namespace quern::chat {
namespace {

using ::quern::test::contains;
using ::quern::test::error_of;

// `untrained` ids and then `trained` ones.
MarkedTokens sequence(size_t untrained, size_t trained) {
  MarkedTokens tokens;
  for (size_t i = 0; i < untrained + trained; ++i) {
    tokens.ids.push_back(static_cast<int32_t>(i));
    tokens.trained.push_back(i < untrained ? 0 : 1);
  }
  return tokens;
}

TEST(TrainingSequences, KeepsWhatFits) {
  TrainingSequences all(8);
  all.add({sequence(4, 5), sequence(1, 1)});
  EXPECT_EQ(all.sequences().size(), 2u);
  EXPECT_EQ(all.sequences()[0].ids.size(), 9u);  // 8 positions
  EXPECT_EQ(all.summary().text(), "1 conversation: 2 sequences, 11 tokens, 6 trained; longest 9");
}

TEST(TrainingSequences, CutsAndDropsWhatDoesNotFit) {
  TrainingSequences all(8);
  all.add({sequence(4, 6)});
  all.add({sequence(8, 3)});
  all.add({sequence(9, 1000)});
  all.add({});
  EXPECT_EQ(all.sequences().size(), 2u);
  for (const MarkedTokens& one : all.sequences()) {
    EXPECT_EQ(one.ids.size(), 9u);
    EXPECT_EQ(one.trained.size(), 9u);
  }
  EXPECT_EQ(all.sequences()[1].targets(), 1u);
  EXPECT_EQ(all.summary().text(),
            "4 conversations: 2 sequences, 18 tokens, 6 trained; longest 1,009; 2 cut, 1 dropped");
}

TEST(TrainingSequences, TheFirstIdIsNoTarget) {
  EXPECT_EQ(sequence(0, 3).targets(), 2u);
  EXPECT_EQ(MarkedTokens().targets(), 0u);
  TrainingSequences all(1);
  all.add({sequence(0, 1)});
  EXPECT_EQ(all.summary().dropped, 1u);
}

TEST(TrainingSequences, ReadsFiles) {
  const ::quern::test::Folder folder;
  const auto one = folder.write("one.jsonl", "{\"text\": \"abc\"}\n{\"text\": \"de\"}\n");
  const auto two = folder.write("two.jsonl", "{\"prompt\": \"a\", \"completion\": \"b\"}\n");
  const auto tokenizer = test::chatml_tokenizer();
  EXPECT_EQ(read_training_sequences({one, two}, nullptr, *tokenizer, 16).summary().text(),
            "3 conversations: 3 sequences, 10 tokens, 7 trained; longest 4");
}

TEST(TrainingSequences, NothingToTrainOnIsAnError) {
  const ::quern::test::Folder folder;
  const auto file = folder.write("one.jsonl", "{\"prompt\": \"abcd\", \"completion\": \"b\"}\n");
  const auto tokenizer = test::chatml_tokenizer();
  EXPECT_TRUE(contains(error_of([&] { read_training_sequences({file}, nullptr, *tokenizer, 3); }),
                       "one.jsonl: expected tokens to train on within a context of 3, found none in 1 conversation"));
  EXPECT_TRUE(contains(error_of([] { TrainingSequences(0); }), "expected a context of at least 1"));
}

}  // namespace
}  // namespace quern::chat
