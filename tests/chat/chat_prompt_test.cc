#include "chat/chat_prompt.h"

#include <gtest/gtest.h>

#include "chat/chat_history.h"
#include "chat/marked_tokens.h"
#include "core/json.h"
#include "tests/chat/chat_support.h"
#include "tests/data/files.h"

namespace quern::chat {
namespace {

using ::quern::test::contains;
using ::quern::test::error_of;
using Json = nlohmann::ordered_json;

Json messages(const std::vector<std::string>& contents) {
  Json all = Json::array();
  for (size_t i = 0; i < contents.size(); ++i) {
    all.push_back({{"role", i % 2 == 0 ? "user" : "assistant"}, {"content", contents[i]}});
  }
  return all;
}

// Writes earlier answers without what precedes a slash, as templates of models that think do.
constexpr const char* kHidesThoughts = R"({%- for message in messages %}
{%- set content = message.content %}
{%- if message.role == "assistant" and not loop.last %}{% set content = content.split("/")[-1] %}{% endif %}
{{- "<|im_start|>" + message.role + ":" + content + "<|im_end|>" }}
{%- endfor %}
{%- if add_generation_prompt %}{{ "<|im_start|>assistant:" }}{% endif %})";

constexpr const char* kSpaced = R"({%- for message in messages %}
{%- if message.role == "user" %}{{ "[INST] " + message.content + " [/INST]" }}
{%- else %}{{ " " + message.content + ".</s>" }}{% endif %}
{%- endfor %})";

// What a model is asked is what it was trained to answer.
TEST(ChatPrompt, IsTheBeginningOfTheTrainingSequence) {
  const auto tokenizer = test::chatml_tokenizer();
  const std::vector<std::string> contents = {"A", "\n\nx/B ", "<|im_end|>", "", "E", "F"};
  const std::string record = json_text(Json{{"messages", messages(contents)}});
  for (const std::string& text : {ChatTemplate::chatml().text(), std::string(kHidesThoughts)}) {
    const ChatTemplate chat_template(text, "test");
    const std::vector<MarkedTokens> sequences = mark(test::parsed(record), &chat_template, *tokenizer);
    std::vector<int32_t> ids = chat_prompt(messages({contents.begin(), contents.end() - 1}), chat_template, *tokenizer);
    ids.push_back(tokenizer->encode("F").front());
    ids.push_back(257);  // <|im_end|>
    EXPECT_EQ(ids, sequences.back().ids);
  }
}

TEST(ChatPrompt, ContinuesTheTokensOfTheLastAnswer) {
  const auto tokenizer = test::chatml_tokenizer();
  const ChatTemplate chatml = ChatTemplate::chatml();
  std::vector<int32_t> said = chat_prompt(messages({"A"}), chatml, *tokenizer);
  for (const int32_t id : tokenizer->encode("Good\n")) said.push_back(id);
  const std::vector<int32_t> next = chat_prompt(messages({"A", "Good\n", "C"}), chatml, *tokenizer);
  ASSERT_LT(said.size(), next.size());
  EXPECT_TRUE(std::equal(said.begin(), said.end(), next.begin()));
}

TEST(ChatPrompt, ATemplateMayRefuseOrWriteNothing) {
  const auto tokenizer = test::chatml_tokenizer();
  const ChatTemplate refusing(R"({{ raise_exception("no system role") }})", "refusing"), silent("", "silent");
  EXPECT_TRUE(contains(error_of([&] { chat_prompt(messages({"A"}), refusing, *tokenizer); }), "no system role"));
  EXPECT_TRUE(contains(error_of([&] { chat_prompt(messages({"A"}), silent, *tokenizer); }), "wrote nothing"));
}

TEST(AnswerForm, FindsTheTokenThatEndsATurn) {
  const AnswerForm form = answer_form(ChatTemplate::chatml(), *test::chatml_tokenizer());
  EXPECT_EQ(form.before, "");
  EXPECT_EQ(form.after, "");
  EXPECT_EQ(form.end_token, 257);
}

TEST(AnswerForm, TextEndsATurnIfThereIsNoSuchToken) {
  const AnswerForm form = answer_form(ChatTemplate::chatml(), *test::byte_tokenizer({}));
  EXPECT_EQ(form.after, "<|im_end|>");
  EXPECT_EQ(form.end_token, std::nullopt);
}

TEST(AnswerForm, KnowsWhatSurroundsTheContent) {
  const auto tokenizer = test::byte_tokenizer({"</s>"}, "</s>");
  const AnswerForm form = answer_form(ChatTemplate(kSpaced, "spaced"), *tokenizer);
  EXPECT_EQ(form.before, " ");
  EXPECT_EQ(form.after, ".");
  EXPECT_EQ(form.end_token, 256);
}

TEST(AnswerForm, IsEmptyForATemplateThatRefuses) {
  const AnswerForm form = answer_form(ChatTemplate("{{ raise_exception('no') }}", "no"), *test::chatml_tokenizer());
  EXPECT_EQ(form.before + form.after, "");
  EXPECT_EQ(form.end_token, std::nullopt);
}

TEST(ChatHistory, RecordsAllMessagesAndAsksWithThoseThatAreSeen) {
  ChatHistory history;
  EXPECT_FALSE(history.undo());
  history.set_system("Be brief");
  history.add("A", "B");
  history.add("C", "D");
  history.hide(2);
  EXPECT_EQ(json_text(history.asking("E")), R"([{"role":"system","content":"Be brief"},{"role":"user","content":"C"},)"
                                            R"({"role":"assistant","content":"D"},{"role":"user","content":"E"}])");
  EXPECT_EQ(test::parsed(history.record()).messages.size(), 5u);
  EXPECT_TRUE(history.undo());
  EXPECT_TRUE(history.undo());
  EXPECT_TRUE(history.empty());
  history.add("A", "B");
  EXPECT_EQ(history.asking("C").size(), 4u);  // what was removed no longer counts as hidden
  history.set_system("");
  history.clear();
  EXPECT_EQ(json_text(history.asking("E")), R"([{"role":"user","content":"E"}])");
}

}  // namespace
}  // namespace quern::chat
