#include "generate/chat_model.h"

#include "chat/chat_history.h"
#include "data/byte_tokenizer.h"
#include "generate/answer_text.h"
#include "generate/model.h"
#include "support/message.h"

namespace quern {
namespace {

// A model of bytes, for which the end of a turn is text, with a template of few characters.
class ChatModelTest : public ::testing::Test {
 protected:
  ChatModelTest() { test::fill(model_); }

  static nn::ModelConfig config() {
    nn::ModelConfig config = test::small_config(kContext);
    config.vocabulary = 256;
    return config;
  }

  ChatModel chat(size_t tokens, uint64_t seed = 2) {
    return ChatModel(model_, tokenizer_, template_,
                     {.generate = {.max_tokens = tokens, .sampling = {.seed = seed}}, .threads = 1});
  }

  // The tokens after the messages as the template writes them, from a decoder that has seen nothing before.
  std::string fresh(const chat::ChatHistory& history, const std::string& question, uint32_t sample, size_t tokens) {
    Decoder decoder(model_);
    GeneratedText text(decoder, tokenizer_, tokenizer_.encode(template_.render(history.asking(question), true)),
                       {.max_tokens = tokens, .sampling = {.seed = 2, .sample = sample}});
    std::string all;
    for (std::string piece = text.next(); !piece.empty(); piece = text.next()) all += piece;
    return all;
  }

  static constexpr size_t kContext = 160;
  data::ByteTokenizer tokenizer_;
  nn::Transformer model_{config(), true};
  chat::ChatTemplate template_{
      "{% for m in messages %}{{ m.role[0] + ':' + m.content + '|end|' }}{% endfor %}"
      "{% if add_generation_prompt %}a:{% endif %}",
      "short"};
};

TEST_F(ChatModelTest, AConversationHasTheAnswersOfFreshPrompts) {
  ChatModel model = chat(12);
  chat::ChatHistory history;
  for (uint32_t i = 0; i < 3; ++i) {
    const std::string question = "Question " + std::to_string(i);
    const Answer answer = model.answer(history.asking(question), i);
    EXPECT_EQ(answer.text, fresh(history, question, i, 12));
    EXPECT_EQ(answer.finish, Finish::kLength);
    EXPECT_EQ(answer.tokens, 12u);
    history.add(question, answer.text);
  }
  history.undo();  // back to a prompt of which more is in the cache
  EXPECT_EQ(model.answer(history.asking("Other"), 7).text, fresh(history, "Other", 7, 12));
}

TEST_F(ChatModelTest, OnlyNewTokensAreComputed) {
  std::vector<size_t> computed;
  ChatModel model(model_, tokenizer_, template_,
                  {.generate = {.max_tokens = 1}, .threads = 1, .on_block = [&](size_t, size_t total) {
                     if (computed.empty() || computed.back() != total) computed.push_back(total);
                   }});
  const std::string text(130, 'x');  // two blocks
  model.answer(chat::ChatHistory().asking(text));
  model.answer(chat::ChatHistory().asking(text));
  ASSERT_EQ(computed.size(), 1u);  // the second time, only the last position is computed: a single block
  EXPECT_EQ(computed[0], 2 + 130 + 5 + 2u);
}

// A template for which a turn of the assistant ends with two characters that the model is known to write.
TEST_F(ChatModelTest, AnswersEndWithTheTextThatEndsATurn) {
  const auto messages = chat::ChatHistory().asking("Hello");
  const std::string whole = chat(120).answer(messages).text;
  const auto is_letter = [](char c) { return c > ' ' && c <= '~'; };
  size_t at = 1;
  while (at + 2 < whole.size() && !(is_letter(whole[at]) && is_letter(whole[at + 1]))) ++at;
  const std::string end = whole.substr(at, 2);
  const chat::ChatTemplate ending(
      "{% for m in messages %}{{ m.role[0] + ':' + m.content + ('|end|' if m.role == 'user' else eos_token) }}"
      "{% endfor %}{% if add_generation_prompt %}a:{% endif %}",
      "ending", {.eos = end});
  ChatModel model(model_, tokenizer_, ending, {.generate = {.max_tokens = 120, .sampling = {.seed = 2}}});
  const Answer answer = model.answer(messages);
  EXPECT_EQ(answer.text, whole.substr(0, whole.find(end)));
  EXPECT_EQ(answer.finish, Finish::kEnd);
}

TEST_F(ChatModelTest, PiecesAreTheAnswerAndMayEndIt) {
  ChatModel model = chat(30);
  std::string pieces;
  const auto messages = chat::ChatHistory().asking("Hello");
  const Answer whole = model.answer(messages, 0, [&](const std::string& piece) {
    pieces += piece;
    return true;
  });
  EXPECT_EQ(pieces, whole.text);
  const Answer stopped = model.answer(messages, 0, [](const std::string&) { return false; });
  EXPECT_EQ(stopped.finish, std::nullopt);
  EXPECT_EQ(stopped.text, whole.text.substr(0, stopped.text.size()));
  EXPECT_LT(stopped.tokens, 5u);
  EXPECT_EQ(model.answer(messages).text, whole.text);
}

TEST_F(ChatModelTest, SamplesAndSeedsDiffer) {
  const auto messages = chat::ChatHistory().asking("Hello");
  ChatModel model = chat(20), other = chat(20, 3);
  EXPECT_EQ(model.answer(messages, 1).text, model.answer(messages, 1).text);
  EXPECT_NE(model.answer(messages, 1).text, model.answer(messages, 2).text);
  EXPECT_NE(model.answer(messages).text, other.answer(messages).text);
}

// The context has 160 positions, of which 40 are for the answer. The system message takes 13, an exchange 54 and the
// question with the generation prompt 10.
TEST_F(ChatModelTest, TheOldestExchangesAreDroppedButNotTheSystemMessage) {
  ChatModel model = chat(40);
  chat::ChatHistory history, seen;
  history.set_system("system");
  seen.set_system("system");
  history.add(std::string(20, 'a'), std::string(20, 'b'));
  EXPECT_EQ(model.answer(history.asking("e")).hidden, 0u);
  for (chat::ChatHistory* one : {&history, &seen}) one->add(std::string(20, 'c'), std::string(20, 'd'));
  const Answer answer = model.answer(history.asking("e"));
  EXPECT_EQ(answer.hidden, 2u);
  EXPECT_EQ(answer.prompt_tokens, 13u + 54u + 10u);
  EXPECT_EQ(answer.text, chat(40).answer(seen.asking("e")).text);
  history.hide(answer.hidden);
  EXPECT_EQ(model.answer(history.asking("e")).hidden, 0u);
}

TEST_F(ChatModelTest, AnAnswerEndsWithTheContext) {
  ChatModel model = chat(1000);
  const Answer answer = model.answer(chat::ChatHistory().asking(std::string(140, 'x')));
  EXPECT_EQ(answer.prompt_tokens + answer.tokens, kContext);
  EXPECT_EQ(answer.finish, Finish::kLength);
}

TEST_F(ChatModelTest, AMessageThatIsTooLongIsRefused) {
  ChatModel model = chat(10);
  const auto ask = [&] { model.answer(chat::ChatHistory().asking(std::string(500, 'x'))); };
  EXPECT_NE(test::message_of(ask).find("expected fewer than 160 tokens"), std::string::npos);
  EXPECT_NO_THROW(model.answer(chat::ChatHistory().asking("shorter")));
}

TEST_F(ChatModelTest, BadOptionsAreRefused) {
  const auto make = [&] { ChatModel(model_, tokenizer_, template_, {.generate = {.sampling = {.top_p = 0}}}); };
  EXPECT_NE(test::message_of(make).find("top_p"), std::string::npos);
}

TEST(AnswerText, RemovesOnlyWhatTheTextBeginsWith) {
  AnswerText space(" "), thought("<think></think>"), nothing(""), other("<think></think>"), open("<think></think>");
  const auto content = [](AnswerText& text, std::initializer_list<std::string_view> pieces) {
    std::string all;
    for (const std::string_view piece : pieces) all += text.feed(piece);
    return all + text.finish();
  };
  EXPECT_EQ(content(space, {" a", " b"}), "a b");
  EXPECT_EQ(content(thought, {"<think>", "</think>", "x"}), "x");
  EXPECT_EQ(content(nothing, {"x"}), "x");
  EXPECT_EQ(content(other, {"<think>", "Hm</think>x"}), "<think>Hm</think>x");
  EXPECT_EQ(content(open, {"<thi"}), "<thi");
}

}  // namespace
}  // namespace quern
