#include "data/tokenizer_json.h"

#include <gtest/gtest.h>

#include "data/byte_alphabet.h"
#include "data/byte_tokenizer.h"
#include "data/char_tokenizer.h"
#include "tests/data/tokenizer_support.h"

namespace quern::data {
namespace {

using test::error_of;

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

std::string message(const std::string& json) {
  return error_of([&] { Tokenizer::from_json(json, "t.json"); });
}

void expect_same(const Tokenizer& tokenizer) {
  const auto loaded = Tokenizer::from_json(tokenizer.to_json(), "t.json");
  EXPECT_EQ(loaded->name(), tokenizer.name());
  EXPECT_EQ(loaded->vocabulary_size(), tokenizer.vocabulary_size());
  EXPECT_EQ(loaded->end_of_text(), tokenizer.end_of_text());
  EXPECT_EQ(loaded->to_json(), tokenizer.to_json());
  for (const std::string& text : {std::string("ab ba <|endoftext|> baab"), std::string("a")}) {
    EXPECT_EQ(loaded->encode(text), tokenizer.encode(text));
  }
}

std::unique_ptr<BpeTokenizer> small_bpe() {
  return test::trained(" abab ab ba <|endoftext|> \xff\xff \xff\xff \u00e9 \u00e9",
                       {.vocabulary_size = 263, .added_tokens = {"<|endoftext|>"}});
}

TEST(TokenizerJson, EveryKindRoundTrips) {
  expect_same(ByteTokenizer());
  expect_same(*CharTokenizer::from_text("ab <|endoftext>\"\\\n\u00e9\U0001f600", "text"));
  expect_same(*small_bpe());
}

// As Hugging Face published it for GPT-2: no type, no use_regex, merges of two strings or of one, the special token in
// the vocabulary, ids in another order than ours.
std::string as_hugging_face(std::string_view merges) {
  std::string vocab;
  for (int byte = 255; byte >= 0; --byte) {
    const std::string key = to_alphabet(std::string(1, static_cast<char>(static_cast<unsigned char>(byte))));
    const char* const escape = key == "\"" || key == "\\" ? "\\" : "";
    vocab += fmt::format("\"{}{}\":{},", escape, key, 256 - byte);
  }
  return fmt::format(
      R"({{"version":"1.0","truncation":null,"padding":null,"added_tokens":[{{"id":0,"special":true,"content":"<|endoftext|>",)"
      R"("single_word":false,"lstrip":false,"rstrip":false,"normalized":true}}],"normalizer":null,)"
      R"("pre_tokenizer":{{"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true}},)"
      R"("post_processor":{{"type":"ByteLevel","add_prefix_space":true,"trim_offsets":false}},)"
      R"("decoder":{{"type":"ByteLevel","add_prefix_space":true,"trim_offsets":true}},)"
      R"("model":{{"dropout":null,"unk_token":null,"continuing_subword_prefix":"","end_of_word_suffix":"","fuse_unk":false,)"
      R"("vocab":{{{}"he":257,"Ġthe":258,"Ġt":259,"<|endoftext|>":0}},"merges":{}}}}})",
      vocab, merges);
}

TEST(TokenizerJson, ReadsWhatHuggingFaceWrites) {
  for (const char* merges : {R"(["h e","Ġ t","Ġt he"])", R"([["h","e"],["Ġ","t"],["Ġt","he"]])"}) {
    const auto tokenizer = Tokenizer::from_json(as_hugging_face(merges), "gpt2.json");
    EXPECT_EQ(tokenizer->name(), "bpe");
    EXPECT_EQ(tokenizer->vocabulary_size(), 260);
    EXPECT_EQ(tokenizer->end_of_text(), 0);
    EXPECT_EQ(tokenizer->encode("he the<|endoftext|>h"), (std::vector<int32_t>{257, 258, 0, 256 - 'h'}));
    expect_same(*tokenizer);
  }
}

TEST(TokenizerJson, UnsupportedFeaturesAreNamed) {
  const std::string good = as_hugging_face("[]");
  ASSERT_EQ(message(good), "no error");
  const auto with = [&](std::string_view from, std::string_view to) { return message(replaced(good, from, to)); };
  EXPECT_EQ(with(R"("model":{)", R"("model":{"type":"Unigram",)"),
            "[tokenizer] t.json: model: type: expected BPE or WordLevel (characters), found \"Unigram\"");
  EXPECT_EQ(with(R"("normalizer":null)", R"("normalizer":{"type":"NFKC"})"),
            "[tokenizer] t.json: normalizer: expected none or NFC, found \"NFKC\"");
  EXPECT_EQ(with(R"("pre_tokenizer":{"type":"ByteLevel")", R"("pre_tokenizer":{"type":"Whitespace")"),
            "[tokenizer] t.json: pre_tokenizer: expected ByteLevel, Metaspace, or a Sequence of Split or Digits and "
            "ByteLevel, found \"Whitespace\"");
  EXPECT_EQ(with(R"("add_prefix_space":false)", R"("add_prefix_space":true)"),
            "[tokenizer] t.json: pre_tokenizer: add_prefix_space: expected false, found true; decoding would not "
            "restore the text");
  EXPECT_EQ(with(R"("post_processor":{"type":"ByteLevel")", R"("post_processor":{"type":"BertProcessing")"),
            "[tokenizer] t.json: post_processor: expected ByteLevel, TemplateProcessing or a Sequence of these, found "
            "\"BertProcessing\"");
  EXPECT_EQ(with(R"("decoder":{"type":"ByteLevel")", R"("decoder":{"type":"WordPiece")"),
            "[tokenizer] t.json: decoder: expected ByteLevel, found \"WordPiece\"");
  EXPECT_EQ(with(R"("dropout":null)", R"("dropout":0.1)"),
            "[tokenizer] t.json: model: dropout: expected none, found 0.1");
  EXPECT_EQ(with(R"("end_of_word_suffix":"")", R"("end_of_word_suffix":"</w>")"),
            "[tokenizer] t.json: model: end_of_word_suffix: expected none, found \"</w>\"");
  EXPECT_EQ(with(R"("lstrip":false)", R"("lstrip":true)"),
            "[tokenizer] t.json: added_tokens[0]: lstrip: expected false, found true; it is not supported");
}

TEST(TokenizerJson, InconsistenciesAreNamed) {
  const std::string good = as_hugging_face(R"(["h e","Ġ t","Ġt he"])");
  ASSERT_EQ(message(good), "no error");
  const auto with = [&](std::string_view from, std::string_view to) { return message(replaced(good, from, to)); };
  EXPECT_EQ(with(R"("he":257)", R"("he":2570)"),
            "[tokenizer] t.json: model: vocab: \"he\": expected ids from 0 to 519, found 2570");
  EXPECT_NE(with(R"("he":257)", R"("he":258)").find("expected each id once, found id 258 for"), std::string::npos);
  EXPECT_EQ(with(R"("he":257)", R"("he":-1)"),
            "[tokenizer] t.json: model: vocab[\"he\"]: expected an id, a whole number below 2^31, found -1");
  EXPECT_EQ(with(R"("he":257)", R"("h e":257)"),
            "[tokenizer] t.json: model: merges[0]: expected tokens of the vocabulary, found \"he\"");
  EXPECT_EQ(with(R"("merges")", R"("verges")"), "[tokenizer] t.json: model: merges: expected an array, found nothing");
  EXPECT_EQ(with(R"("h e")", R"("h  e")"), "[tokenizer] t.json: model: merges[0]: expected two tokens, found \"h  e\"");
  EXPECT_EQ(with(R"("h e")", R"(["h"])"), "[tokenizer] t.json: model: merges[0]: expected two tokens, found an array");
  EXPECT_EQ(with(R"("h e")", R"("Ġ t")"), "[tokenizer] t.json: merge 1 repeats merge 0");
  EXPECT_EQ(with(R"("id":0)", R"("id":5)"),
            "[tokenizer] t.json: added_tokens[0]: expected id 0 as in the vocabulary, found 5");
  EXPECT_EQ(with(R"("Ġthe":258)", R"("\u4e2d":258)").find("[tokenizer] t.json: model: merges[2]"), 0u);
  EXPECT_EQ(with(R"("model":)", R"("modell":)"), "[tokenizer] t.json: model: expected an object, found nothing");
  EXPECT_EQ(message("[]"), "[tokenizer] t.json: expected an object, found an array");
  EXPECT_EQ(message("{\"a\":\n"), "[tokenizer] t.json: expected JSON, found a syntax error at byte 7");
  EXPECT_EQ(message("{\"a\":1e999}"), "[tokenizer] t.json: expected JSON, found a number that is out of range");
}

TEST(TokenizerJson, ByteAndCharAreVerifiedToo) {
  const std::string byte = ByteTokenizer().to_json();
  EXPECT_EQ(message(replaced(replaced(byte, "\"a\": 97", "\"a\": 98"), "\"b\": 98", "\"b\": 97")),
            "[tokenizer] t.json: model: vocab: expected id 97 for the byte of that value, found \"b\"");
  EXPECT_NE(message(replaced(byte, "\"a\": 97,", "")).find("expected ids from 0 to 254 without a gap, found 255"),
            std::string::npos);
  EXPECT_EQ(message(replaced(byte, "\"merges\": []", "\"merges\": [\"a b\"]")),
            "[tokenizer] t.json: model: merges: expected none, as ByteLevel without use_regex is for bytes only, found "
            "an array");
  const std::string character = CharTokenizer::from_text("abc", "text")->to_json();
  EXPECT_EQ(message(replaced(character, "\"b\": 1", "\"bb\": 1")),
            "[tokenizer] t.json: model: vocab: expected single characters, found \"bb\"");
  EXPECT_EQ(message(replaced(character, "\"b\": 1", "\"\": 1")),
            "[tokenizer] t.json: model: vocab: expected single characters, found \"\"");
  EXPECT_NE(message(replaced(character, "Isolated", "Removed")).find("expected a Split by [\\s\\S]"),
            std::string::npos);
}

}  // namespace
}  // namespace quern::data
