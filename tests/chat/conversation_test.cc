#include "chat/conversation.h"

#include <gtest/gtest.h>

#include "tests/chat/chat_support.h"
#include "tests/data/files.h"
#include "tests/support/mutation.h"

namespace quern::chat {
namespace {

using ::quern::test::contains;
using ::quern::test::error_of;
using test::parsed;
using Trained = std::vector<bool>;

std::string error_in(std::string_view line) {
  return error_of([&] { parsed(line); });
}

std::string messages(std::string_view list) { return fmt::format("{{\"messages\": [{}]}}", list); }

constexpr std::string_view kUser = R"({"role": "user", "content": "Hi"})";
constexpr std::string_view kAssistant = R"({"role": "assistant", "content": "Hello"})";

TEST(Conversation, ReadsMessages) {
  const Conversation found = parsed(R"({"id": 7, "messages": [{"role": "system", "content": "Be kind."},
      {"role": "user", "content": "Hi", "name": "Ann"}, {"role": "assistant", "content": "Hello \ud83d\ude00"}]})");
  EXPECT_EQ(found.kind, RecordKind::kMessages);
  EXPECT_EQ(found.where, "a.jsonl:3");
  EXPECT_EQ(found.messages.size(), 3u);
  EXPECT_EQ(found.messages[1]["name"], "Ann");
  EXPECT_EQ(found.messages[2]["content"], "Hello \U0001F600");
  EXPECT_TRUE(found.tools.is_null());
  EXPECT_EQ(found.trained, (Trained{false, false, true}));
}

TEST(Conversation, ReadsPromptsAndText) {
  const Conversation prompt = parsed(R"({"prompt": "2 + 2 =", "completion": " 4", "source": "book"})");
  EXPECT_EQ(prompt.kind, RecordKind::kPromptCompletion);
  EXPECT_EQ(json_text(prompt.messages), R"([{"role":"user","content":"2 + 2 ="},{"role":"assistant","content":" 4"}])");
  EXPECT_EQ(prompt.trained, (Trained{false, true}));
  const Conversation text = parsed(R"({"text": "Once", "prompt": "ignored"})");
  EXPECT_EQ(text.kind, RecordKind::kText);
  EXPECT_EQ(text.text, "Once");
  EXPECT_EQ(text.trained, Trained{true});
}

TEST(Conversation, TrainExcludesMessagesAndRecords) {
  const std::string other = R"({"role": "assistant", "content": "No", "train": false})";
  const Conversation one = parsed(messages(fmt::format("{},{},{},{}", kUser, other, kUser, kAssistant)));
  EXPECT_EQ(one.trained, (Trained{false, false, false, true}));
  EXPECT_FALSE(one.messages[1].contains("train"));
  EXPECT_EQ(parsed(R"({"prompt": "a", "completion": "b", "train": false})").trained, (Trained{false, false}));
  EXPECT_EQ(parsed(R"({"text": "a", "train": false})").trained, Trained{false});
  const std::string yes = R"({"role": "assistant", "content": "Yes", "train": true})";
  const std::string record =
      fmt::format("{{\"train\": false, \"messages\": [{},{},{},{}]}}", kUser, kAssistant, kUser, yes);
  EXPECT_EQ(parsed(record).trained, (Trained{false, false, false, true}));
}

TEST(Conversation, PassesToolsOn) {
  const Conversation found =
      parsed(R"({"tools": [{"type": "function"}], "messages": [{"role": "user", "content": "Time?"},
      {"role": "assistant", "content": null, "tool_calls": [{"function": {"name": "clock", "arguments": {"b": 1, "a": 2}}}]},
      {"role": "tool", "content": "12:00"}, {"role": "assistant", "reasoning_content": "noon", "content": "Noon."}]})");
  EXPECT_EQ(json_text(found.tools), R"([{"type":"function"}])");
  EXPECT_TRUE(found.messages[1]["content"].is_null());
  EXPECT_EQ(json_text(found.messages[1]["tool_calls"]), R"([{"function":{"name":"clock","arguments":{"b":1,"a":2}}}])");
  EXPECT_EQ(found.messages[3]["reasoning_content"], "noon");
  EXPECT_EQ(found.trained, (Trained{false, true, false, true}));
  EXPECT_TRUE(parsed(R"({"prompt": "a", "completion": "b", "tools": []})").tools.is_null());
}

TEST(Conversation, JoinsPartsOfText) {
  const std::string user =
      R"({"role": "user", "content": [{"type": "text", "text": "Hi "}, {"type": "text", "text": "you"}]})";
  EXPECT_EQ(parsed(messages(fmt::format("{},{}", user, kAssistant))).messages[0]["content"], "Hi you");
  const std::string image = R"({"role": "user", "content": [{"type": "image", "url": "x.png"}]})";
  EXPECT_TRUE(contains(error_in(messages(fmt::format("{},{}", image, kAssistant))),
                       "a.jsonl:3: message 1: \"content\": expected parts like"));
}

TEST(Conversation, ErrorsNameThePlace) {
  EXPECT_EQ(error_in("{\"messages\": [}"), "[data] a.jsonl:3:15: expected a JSON object, found a syntax error");
  EXPECT_EQ(error_in("[1]"), "[data] a.jsonl:3: expected a JSON object, found an array");
  EXPECT_EQ(error_in(std::string(100, '[') + std::string(100, ']')),
            "[data] a.jsonl:3: expected JSON of at most 64 levels, found more");
  EXPECT_EQ(error_in(R"({"conversations": [], "id": 1})"),
            "[data] a.jsonl:3: expected \"messages\", \"prompt\" and \"completion\", or \"text\", found "
            "'conversations', 'id'");
  EXPECT_EQ(error_in(R"({"prompt": "a"})"),
            "[data] a.jsonl:3: expected \"messages\", \"prompt\" and \"completion\", or \"text\", found 'prompt'");
  EXPECT_TRUE(contains(error_in("{}"), "found no fields"));
  EXPECT_TRUE(contains(error_in(R"({"text": 3})"), "\"text\": expected a string, found a number"));
  EXPECT_TRUE(
      contains(error_in(R"({"prompt": "a", "completion": null})"), "\"completion\": expected a string, found null"));
  EXPECT_TRUE(
      contains(error_in(R"({"text": "a", "train": "no"})"), "\"train\": expected true or false, found a string"));
}

TEST(Conversation, ErrorsOfMessages) {
  EXPECT_EQ(error_in(messages("")), "[data] a.jsonl:3: \"messages\": expected at least one message, found none");
  EXPECT_TRUE(contains(error_in(R"({"messages": "Hi"})"), "expected at least one message, found a string"));
  EXPECT_EQ(error_in(messages(kUser)), "[data] a.jsonl:3: expected a message of the assistant, found none among 1");
  EXPECT_EQ(error_in(messages(R"({"role": "human", "content": "Hi"})")),
            "[data] a.jsonl:3: message 1: \"role\": expected system, user, assistant, tool, found 'human'");
  EXPECT_TRUE(contains(error_in(messages(R"({"content": "Hi"})")), "\"role\": expected a string, found no such field"));
  EXPECT_TRUE(contains(error_in(messages("3")), "message 1: expected a message, found a number"));
  EXPECT_TRUE(contains(error_in(messages(fmt::format("{},{}", kUser, R"({"role": "assistant"})"))),
                       "message 2: \"content\": expected a string, found no such field"));
  EXPECT_TRUE(contains(error_in(messages(R"({"role": "user", "content": null, "tool_calls": [1]})")), "found null"));
  EXPECT_TRUE(
      contains(error_in(messages(R"({"role": "assistant", "content": null, "tool_calls": []})")), "found null"));
  EXPECT_TRUE(contains(error_in(messages(R"({"role": "user", "content": "Hi", "train": true})")),
                       "\"train\": expected true only for the assistant, found it for user"));
  EXPECT_TRUE(contains(error_in(R"({"tools": {}, "messages": [{"role": "assistant", "content": "a"}]})"),
                       "\"tools\": expected an array, found an object"));
}

TEST(Conversation, TheFirstRecordDecidesTheKind) {
  ConversationParser parser("a.jsonl");
  EXPECT_FALSE(parser.kind());
  parser.parse(R"({"prompt": "a", "completion": "b"})", 2);
  EXPECT_EQ(parser.kind(), RecordKind::kPromptCompletion);
  EXPECT_EQ(parser.parse(R"({"text": "x", "messages": 3, "prompt": "a", "completion": "b"})", 4).kind,
            RecordKind::kPromptCompletion);
  EXPECT_EQ(error_of([&] { parser.parse(R"({"text": "c"})", 5); }),
            "[data] a.jsonl:5: expected a record of prompt/completion, as in line 2, found 'text'");
}

TEST(Conversation, DamagedRecordsAreReadOrRefused) {
  ::quern::test::Mutator mutator(
      {messages(fmt::format("{},{}", kUser, kAssistant)), R"({"prompt": "a", "completion": "b", "train": true})",
       R"({"text": "abc"})",
       R"({"tools": [], "messages": [{"role": "assistant", "content": null, "tool_calls": [{}], "train": false}]})"},
      {"null", "[", "{", "]", "}", "\"", "\"role\"", "\"content\"", "true", "1e999", "\\u0000", "\xff"}, 1);
  size_t refused = 0;
  for (int i = 0; i < 20000; ++i) {
    const std::string message = error_in(mutator.next());
    EXPECT_TRUE(message.empty() || message.starts_with("[data] a.jsonl:3")) << message;
    refused += message.empty() ? 0 : 1;
  }
  EXPECT_GT(refused, 10000u);
}

}  // namespace
}  // namespace quern::chat
