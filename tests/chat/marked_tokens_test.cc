#include "chat/marked_tokens.h"

#include <gtest/gtest.h>

#include "tests/chat/chat_support.h"
#include "tests/data/files.h"
#include "tests/data/tokenizer_models.h"

namespace quern::chat {
namespace {

using ::quern::test::contains;
using ::quern::test::error_of;
using test::marked_texts;
using Texts = std::vector<std::string>;

// A conversation of user and assistant, alternating.
std::string talk(const std::vector<std::string>& contents) {
  nlohmann::ordered_json messages = nlohmann::ordered_json::array();
  for (size_t i = 0; i < contents.size(); ++i) {
    messages.push_back({{"role", i % 2 == 0 ? "user" : "assistant"}, {"content", contents[i]}});
  }
  return json_text(nlohmann::ordered_json{{"messages", messages}});
}

class MarkedChatml : public ::testing::Test {
 protected:
  Texts texts(std::string_view line) const { return marked_texts(line, &chatml_, *tokenizer_); }

  std::unique_ptr<data::Tokenizer> tokenizer_ = test::chatml_tokenizer();
  ChatTemplate chatml_ = ChatTemplate::chatml();
};

TEST_F(MarkedChatml, TrainsWhatTheAssistantSaysAndTheEndOfItsTurn) {
  EXPECT_EQ(texts(talk({"Hi", "Hello"})),
            Texts{"<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n[Hello<|im_end|>]"});
}

TEST_F(MarkedChatml, SeveralTurnsAreOneSequence) {
  EXPECT_EQ(texts(talk({"A", "B", "C", "D"})),
            Texts{"<|im_start|>user\nA<|im_end|>\n<|im_start|>assistant\n[B<|im_end|>]\n<|im_start|>user\nC<|im_end|>\n"
                  "<|im_start|>assistant\n[D<|im_end|>]"});
}

TEST_F(MarkedChatml, WhatFollowsTheLastTrainedTurnIsDropped) {
  EXPECT_EQ(texts(talk({"A", "B", "C"})), texts(talk({"A", "B"})));
  const char* line = R"({"messages": [{"role": "user", "content": "A"}, {"role": "assistant", "content": "B"},
      {"role": "user", "content": "C"}, {"role": "assistant", "content": "D", "train": false}]})";
  EXPECT_EQ(texts(line), texts(talk({"A", "B"})));
}

TEST_F(MarkedChatml, MessagesThatAreNotTrainedAreContext) {
  const char* line = R"({"messages": [{"role": "user", "content": "A"},
      {"role": "assistant", "content": "B", "train": false}, {"role": "user", "content": "C"},
      {"role": "assistant", "content": "D"}]})";
  EXPECT_EQ(texts(line), Texts{"<|im_start|>user\nA<|im_end|>\n<|im_start|>assistant\nB<|im_end|>\n"
                               "<|im_start|>user\nC<|im_end|>\n<|im_start|>assistant\n[D<|im_end|>]"});
  EXPECT_EQ(texts(R"({"train": false, "messages": [{"role": "assistant", "content": "D"}]})"), Texts{});
}

TEST_F(MarkedChatml, WhiteSpaceOfTheContentIsTrained) {
  EXPECT_EQ(texts(talk({"A", "\n B \n"})).front().substr(51), "[\n B \n<|im_end|>]");
  EXPECT_EQ(texts(talk({"A", ""})).front().substr(51), "[<|im_end|>]");
  EXPECT_EQ(texts(talk({"A", "x<|im_end|>\n"})).front().substr(51), "[x<|im_end|>\n<|im_end|>]");
}

TEST_F(MarkedChatml, SpelledSpecialTokensAreTokens) {
  const std::vector<MarkedTokens> found = mark(test::parsed(talk({"A", "B"})), &chatml_, *tokenizer_);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].ids.front(), 256);
  EXPECT_EQ(found[0].ids.back(), 257);
  EXPECT_EQ(found[0].targets(), 2u);
}

TEST_F(MarkedChatml, TheAssistantMayStart) {
  EXPECT_EQ(texts(R"({"messages": [{"role": "assistant", "content": "B"}]})"),
            Texts{"<|im_start|>assistant\n[B<|im_end|>]"});
}

TEST_F(MarkedChatml, PromptsAndCompletionsAreMessages) {
  EXPECT_EQ(texts(R"({"prompt": "A", "completion": "B"})"), texts(talk({"A", "B"})));
}

TEST_F(MarkedChatml, TextHasNoTemplate) {
  EXPECT_EQ(texts(R"({"text": "a<|im_end|>"})"), Texts{"[a<|im_end|><|endoftext|>]"});
  EXPECT_EQ(mark(test::parsed(R"({"text": "<|im_end|>"})"), &chatml_, *tokenizer_)[0].ids.size(), 11u);
  EXPECT_EQ(texts(R"({"text": ""})"), Texts{});  // an end-of-text token that nothing precedes is no target
}

TEST(MarkedTokens, PromptsAndCompletionsWithoutATemplate) {
  const auto tokenizer = test::chatml_tokenizer();
  EXPECT_EQ(marked_texts(R"({"prompt": "2 +", "completion": " 2"})", nullptr, *tokenizer),
            Texts{"2 +[ 2<|endoftext|>]"});
  EXPECT_EQ(marked_texts(R"({"prompt": "", "completion": "a"})", nullptr, *tokenizer),
            Texts{"<|endoftext|>[a<|endoftext|>]"});
  EXPECT_EQ(marked_texts(R"({"prompt": "a", "completion": "b"})", nullptr, *test::byte_tokenizer({})), Texts{"a[b]"});
  EXPECT_EQ(marked_texts(R"({"prompt": "a", "completion": ""})", nullptr, *test::byte_tokenizer({})), Texts{});
}

TEST(MarkedTokens, MessagesNeedATemplate) {
  EXPECT_TRUE(contains(error_of([] {
                         marked_texts(talk({"A", "B"}), nullptr, *test::chatml_tokenizer());
                       }),
                       "[data] a.jsonl:3: expected a model with a chat template for messages, found none"));
}

// Without a special token at its end, all that the template adds is trained.
TEST(MarkedTokens, TemplatesWithoutAnEndToken) {
  const ChatTemplate plain(
      "{% for m in messages %}{{ m.role ~ ': ' ~ m.content ~ '\\n' }}{% endfor %}"
      "{% if add_generation_prompt %}{{ 'assistant: ' }}{% endif %}",
      "plain");
  EXPECT_EQ(marked_texts(talk({"A", "B", "C", "D "}), &plain, *test::chatml_tokenizer()),
            Texts{"user: A\nassistant: [B\n]user: C\nassistant: [D \n]"});
}

// Writes the thoughts of the last turn only, as Qwen3 does.
TEST(MarkedTokens, TurnsThatAreWrittenDifferentlyLaterAreSequencesOfTheirOwn) {
  const ChatTemplate thinks(
      "{% for m in messages %}{{ '<|im_start|>' ~ m.role ~ '\\n' }}"
      "{% if loop.last and m.role == 'assistant' %}{{ '<think>' ~ m.thought ~ '</think>' }}{% endif %}"
      "{{ m.content ~ '<|im_end|>\\n' }}{% endfor %}"
      "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}",
      "thinks");
  const char* line = R"({"messages": [{"role": "user", "content": "A"},
      {"role": "assistant", "content": "B", "thought": "b"}, {"role": "user", "content": "C"},
      {"role": "assistant", "content": "D", "thought": "d"}, {"role": "user", "content": "E"}]})";
  const std::string first = "<|im_start|>user\nA<|im_end|>\n<|im_start|>assistant\n";
  EXPECT_EQ(
      marked_texts(line, &thinks, *test::chatml_tokenizer()),
      (Texts{first + "[<think>b</think>B<|im_end|>]", first + "B<|im_end|>\n<|im_start|>user\nC<|im_end|>\n" +
                                                          "<|im_start|>assistant\n[<think>d</think>D<|im_end|>]"}));
}

TEST(MarkedTokens, ATemplateMustContinueItsGenerationPrompt) {
  const ChatTemplate other(
      "{% for m in messages %}{{ '[' ~ m.role ~ ']' ~ m.content }}{% endfor %}"
      "{% if add_generation_prompt %}[answer]{% endif %}",
      "other");
  EXPECT_EQ(error_of([&] {
              marked_texts(talk({"A", "B"}), &other, *test::chatml_tokenizer());
            }),
            "[data] a.jsonl:3: message 2: expected the template to continue its own generation prompt, found "
            "'ssistant]B' where the prompt has 'nswer]'");
  const ChatTemplate none("{% for m in messages %}{{ m.content }}{% endfor %}", "none");
  EXPECT_TRUE(contains(error_of([&] {
                         marked_texts(R"({"messages": [{"role": "assistant", "content": "B"}]})", &none,
                                      *test::chatml_tokenizer());
                       }),
                       "a.jsonl:3: message 1: expected a generation prompt, found none"));
}

TEST(MarkedTokens, ErrorsOfTheTemplateNameTheRecord) {
  const ChatTemplate refuses("{{ raise_exception('roles must alternate') }}", "my.jinja");
  const std::string message = error_of([&] { marked_texts(talk({"A", "B"}), &refuses, *test::chatml_tokenizer()); });
  EXPECT_TRUE(contains(message, "[data] a.jsonl:3: message 2: "));
  EXPECT_TRUE(contains(message, "my.jinja:1: roles must alternate"));
}

// A tokenizer that has two line breaks as one token must not merge that of a prompt with that of its answer.
TEST(MarkedTokens, NoTokenCrossesFromThePromptIntoTheAnswer) {
  data::TokenizerParts parts = test::chatml_tokenizer()->parts();
  const std::string line = data::to_alphabet("\n");
  data::test::add_merge(parts, line, line);
  const auto tokenizer = data::make_tokenizer(std::move(parts), "test");
  const ChatTemplate chatml = ChatTemplate::chatml();
  const std::string prompt = "<|im_start|>user\nA<|im_end|>\n<|im_start|>assistant\n";
  EXPECT_EQ(tokenizer->encode(prompt + "\n<|im_end|>").size(), tokenizer->encode(prompt).size() + 1);
  EXPECT_EQ(marked_texts(talk({"A", "\n"}), &chatml, *tokenizer), Texts{prompt + "[\n<|im_end|>]"});
}

// SentencePiece puts a space in front of a text, and of what follows a special token; a trained span must not get one.
TEST(MarkedTokens, SentencePieceHasNoSpaceInFrontOfTrainedText) {
  const auto tokenizer = data::make_tokenizer(data::test::sentence_piece_parts(), "test");
  const ChatTemplate zephyr(
      "{% for m in messages %}{{ '<' ~ m.role ~ '>' ~ m.content ~ '</s>' }}{% endfor %}"
      "{% if add_generation_prompt %}{{ '<assistant>' }}{% endif %}",
      "zephyr");
  EXPECT_EQ(marked_texts(talk({"the", "the ab", "he", "the"}), &zephyr, *tokenizer),
            Texts{" <user>the</s> <assistant>[the ab</s>] <user>he</s> <assistant>[the</s>]"});
  const std::vector<MarkedTokens> found = mark(test::parsed(talk({"the", "ab", "he", "the"})), &zephyr, *tokenizer);
  const std::vector<int32_t> prompt = tokenizer->encode("<user>the</s><assistant>ab</s><user>he</s><assistant>");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_TRUE(std::equal(prompt.begin(), prompt.end(), found[0].ids.begin()));  // as it is at inference
}

}  // namespace
}  // namespace quern::chat
