#include "chat/chat_template.h"

#include <gtest/gtest.h>

#include "tests/data/files.h"

namespace quern::chat {
namespace {

using ::quern::test::contains;
using ::quern::test::error_of;
using Json = nlohmann::ordered_json;

const Json kMessages = {{{"role", "user"}, {"content", "Hi"}}, {{"role", "assistant"}, {"content", "Hello\n"}}};

TEST(ChatTemplate, Chatml) {
  const ChatTemplate chatml = ChatTemplate::chatml();
  EXPECT_EQ(chatml.render(kMessages, false),
            "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\nHello\n<|im_end|>\n");
  EXPECT_EQ(chatml.render(Json::array({kMessages[0]}), true),
            "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n");
  EXPECT_EQ(chatml.render(Json::array(), true), "<|im_start|>assistant\n");
}

TEST(ChatTemplate, ChatmlRefusesTools) {
  const ChatTemplate chatml = ChatTemplate::chatml();
  EXPECT_TRUE(contains(error_of([&] { chatml.render(kMessages, false, Json::array({1})); }), "no form for tools"));
  const Json call = {{"role", "assistant"}, {"content", nullptr}};
  EXPECT_TRUE(contains(error_of([&] { chatml.render(Json::array({call}), false); }), "no form for tools"));
  // The call was left out without a word, and the model learned to say only what stands before it.
  const Json both = {{"role", "assistant"}, {"content", "One moment."}, {"tool_calls", {{{"type", "function"}}}}};
  EXPECT_TRUE(contains(error_of([&] { chatml.render(Json::array({both}), false); }), "no form for tools"));
}

TEST(ChatTemplate, SpecialTokensAreVariables) {
  const char* text = "{{ bos_token }}|{{ eos_token }}|{{ pad_token is defined }}|{{ tools is none }}";
  EXPECT_EQ(ChatTemplate(text, "test", {.bos = "<s>", .eos = "</s>"}).render(kMessages, false), "<s>|</s>|False|True");
}

TEST(ChatTemplate, ErrorsNameTheTemplate) {
  EXPECT_TRUE(contains(error_of([] { ChatTemplate("{% if %}", "my.jinja"); }), "my.jinja:1"));
  const ChatTemplate refuses("\n{{ raise_exception('no') }}", "my.jinja");
  EXPECT_TRUE(contains(error_of([&] { refuses.render(kMessages, false); }), "my.jinja:2: no"));
}

std::string rendered(const TemplateFiles& files) {
  const std::optional<ChatTemplate> found = load_chat_template(files);
  return found ? found->render(kMessages, false) : "none";
}

TEST(ChatTemplate, LoadsItFromTheFilesOfAModel) {
  const std::string jinja = "jinja {{ eos_token }}";
  const std::string config =
      R"({"chat_template": "config {{ eos_token }}", "eos_token": {"content": "</s>", "id": 2}})";
  EXPECT_EQ(rendered({.folder = "m"}), "none");
  EXPECT_EQ(rendered({.folder = "m", .chat_template = &jinja, .tokenizer_config = &config}), "jinja </s>");
  EXPECT_EQ(rendered({.folder = "m", .tokenizer_config = &config}), "config </s>");
  const std::string named =
      R"({"chat_template": [{"name": "rag", "template": "no"}, {"name": "default", "template": "yes"}]})";
  EXPECT_EQ(rendered({.folder = "m", .tokenizer_config = &named}), "yes");
  for (const std::string other : {"{}", R"({"chat_template": null})", "[]", "broken"}) {
    EXPECT_EQ(rendered({.folder = "m", .tokenizer_config = &other}), "none") << other;
  }
}

TEST(ChatTemplate, ErrorsOfAModelsFiles) {
  const auto error = [](const std::string& config) {
    return error_of([&] { load_chat_template({.folder = "m", .tokenizer_config = &config}); });
  };
  EXPECT_EQ(error(R"({"chat_template": [{"name": "rag", "template": "x"}]})"),
            "[template] m/tokenizer_config.json: expected a template with the name 'default', found 'rag'");
  EXPECT_TRUE(contains(error(R"({"chat_template": []})"), "found none"));
  EXPECT_TRUE(contains(error(R"({"chat_template": 3})"), "expected a string or a list"));
}

TEST(ChatTemplate, SpecialTokensComeFromTwoFiles) {
  const std::string config = R"({"bos_token": null, "eos_token": "</s>", "pad_token": 3})";
  const std::string map = R"({"bos_token": "<s>", "eos_token": "no", "pad_token": {"content": "<pad>"}})";
  const TokenTexts found = token_texts({.folder = "m", .tokenizer_config = &config, .special_tokens = &map});
  EXPECT_EQ(found.bos, "<s>");
  EXPECT_EQ(found.eos, "</s>");
  EXPECT_EQ(found.pad, "<pad>");
  EXPECT_FALSE(found.unk);
}

// So that training does not depend on the day: the template of Llama 3.2 writes the date.
TEST(ChatTemplateDate, IsTheSameEveryDayOnceItIsFixed) {
  const std::string text = "{{ strftime_now('%d %b %Y %H:%M') }}";
  ChatTemplate fixed(text, "test");
  fixed.fix_date();
  EXPECT_EQ(fixed.render(nlohmann::ordered_json::array(), false), "26 Jul 2024 12:00");
  const std::string today = ChatTemplate(text, "test").render(nlohmann::ordered_json::array(), false);
  EXPECT_GT(std::stoi(today.substr(7, 4)), 2024);
}

}  // namespace
}  // namespace quern::chat
