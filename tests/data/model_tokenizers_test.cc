// Tokenizers of the kinds that published models have, on small vocabularies.
#include <gtest/gtest.h>

#include "data/bpe_tokenizer.h"
#include "data/byte_tokenizer.h"
#include "data/char_tokenizer.h"
#include "tests/data/files.h"
#include "tests/data/tokenizer_models.h"
#include "tests/data/tokenizer_support.h"

namespace quern::data {
namespace {

using test::byte_level_parts;
using test::error_of;
using test::sentence_piece_parts;

std::vector<std::string> tokens_of(const Tokenizer& tokenizer, std::string_view text) {
  std::vector<std::string> tokens;
  const TokenizerParts parts = tokenizer.parts();
  for (const int32_t id : tokenizer.encode(text)) tokens.push_back(parts.tokens[static_cast<size_t>(id)]);
  return tokens;
}

using Tokens = std::vector<std::string>;

std::vector<TokenizerParts> all_kinds() {
  std::vector<TokenizerParts> all;
  for (const PretokenizerKind kind :
       {PretokenizerKind::kGpt2, PretokenizerKind::kDigitsGpt2, PretokenizerKind::kLlama3, PretokenizerKind::kQwen2}) {
    all.push_back(byte_level_parts(kind));
  }
  for (const SpacePrefix prefix :
       {SpacePrefix::kNever, SpacePrefix::kAlways, SpacePrefix::kMetaspaceAlways, SpacePrefix::kMetaspaceFirst}) {
    all.push_back(sentence_piece_parts(prefix));
  }
  return all;
}

TEST(ModelTokenizers, PreTokenizersDecideWhatMerges) {
  const auto of = [](PretokenizerKind kind, std::string_view text) {
    return tokens_of(*make_tokenizer(byte_level_parts(kind), "test"), text);
  };
  EXPECT_EQ(of(PretokenizerKind::kGpt2, "the the123"), (Tokens{"t", "he", "Ġthe", "123"}));
  EXPECT_EQ(of(PretokenizerKind::kDigitsGpt2, "he123"), (Tokens{"he", "1", "2", "3"}));
  EXPECT_EQ(of(PretokenizerKind::kLlama3, "he123."), (Tokens{"he", "123", "."}));
  EXPECT_EQ(of(PretokenizerKind::kQwen2, "he123"), (Tokens{"he", "1", "2", "3"}));
  EXPECT_EQ(of(PretokenizerKind::kGpt2, "he.\n"), (Tokens{"he", ".", "Ċ"}));
  EXPECT_EQ(of(PretokenizerKind::kLlama3, "he.\n"), (Tokens{"he", ".Ċ"}));
}

TEST(ModelTokenizers, IgnoreMergesTakesWholePieces) {
  TokenizerParts parts = byte_level_parts(PretokenizerKind::kLlama3);
  EXPECT_EQ(tokens_of(*make_tokenizer(parts, "test"), "xyz xyz"), (Tokens{"xyz", "Ġ", "x", "y", "z"}));
  parts.ignore_merges = false;
  EXPECT_EQ(tokens_of(*make_tokenizer(parts, "test"), "xyz"), (Tokens{"x", "y", "z"}));
}

TEST(ModelTokenizers, QwenNormalizesText) {
  const auto tokenizer = make_tokenizer(byte_level_parts(PretokenizerKind::kQwen2), "test");
  EXPECT_EQ(tokenizer->encode("e\u0301"), tokenizer->encode("\u00e9"));
  EXPECT_EQ(tokenizer->decode(tokenizer->encode("e\u0301<|im_start|>")), "\u00e9<|im_start|>");
}

TEST(ModelTokenizers, SpecialTokensAreMatchedInPromptsOnly) {
  for (const TokenizerParts& parts : all_kinds()) {
    const auto tokenizer = make_tokenizer(parts, "test");
    const std::string special = parts.tokens[static_cast<size_t>(*parts.eos)];
    const std::vector<int32_t> prompt = tokenizer->encode(special);
    EXPECT_EQ(prompt, std::vector<int32_t>{*parts.eos});
    std::vector<int32_t> document;
    tokenizer->encode_document_to(special, document);
    EXPECT_EQ(std::ranges::count(document, *parts.eos), 0);
    EXPECT_EQ(tokenizer->decode(document), special);
    EXPECT_EQ(tokenizer->end_of_text(), parts.eos);
    EXPECT_EQ(tokenizer->begin_of_text(), parts.add_bos ? parts.bos : std::nullopt);
  }
}

TEST(ModelTokenizers, UserDefinedTokensAreMatchedInDocumentsToo) {
  const auto tokenizer = make_tokenizer(byte_level_parts(PretokenizerKind::kGpt2), "test");
  std::vector<int32_t> document;
  tokenizer->encode_document_to("he<think>he", document);
  EXPECT_EQ(document, tokenizer->encode("he<think>he"));
  EXPECT_EQ(document.size(), 3u);
}

// Tokens of a merge must not be reachable from ordinary text if they are special.
TEST(ModelTokenizers, MergesToSpecialTokensAreLeftOut) {
  TokenizerParts parts = sentence_piece_parts();
  test::add_merge(parts, "<", "s");
  test::add_merge(parts, "<s", ">");
  const auto tokenizer = make_tokenizer(parts, "test");
  std::vector<int32_t> document;
  tokenizer->encode_document_to("<s>", document);
  EXPECT_EQ(std::ranges::count(document, 1), 0);
  EXPECT_EQ(tokenizer->encode("<s>"), std::vector<int32_t>{1});
}

TEST(ModelTokenizers, SentencePieceFallsBackToBytes) {
  const auto tokenizer = make_tokenizer(sentence_piece_parts(), "test");
  EXPECT_EQ(tokens_of(*tokenizer, "the ab"), (Tokens{"▁the", "▁", "ab"}));
  EXPECT_EQ(tokens_of(*tokenizer, "x\n"), (Tokens{"▁", "<0x78>", "<0x0A>"}));
  EXPECT_EQ(tokens_of(*tokenizer, "\u00fc"), (Tokens{"▁", "<0xC3>", "<0xBC>"}));
  EXPECT_EQ(tokens_of(*tokenizer, "\u00e9\xff"), (Tokens{"▁", "é", "<0xFF>"}));
  EXPECT_EQ(tokens_of(*tokenizer, "   the"), (Tokens{"▁▁", "▁", "▁the"}));
  EXPECT_EQ(tokens_of(*tokenizer, "<0x0A>").size(), 7u);  // spelled out, it is not a byte
  EXPECT_TRUE(tokens_of(*tokenizer, "").empty());
}

TEST(ModelTokenizers, SpacePrefixes) {
  const auto of = [](SpacePrefix prefix, std::string_view text) {
    return tokens_of(*make_tokenizer(sentence_piece_parts(prefix), "test"), text);
  };
  EXPECT_EQ(of(SpacePrefix::kNever, "the"), (Tokens{"t", "he"}));
  EXPECT_EQ(of(SpacePrefix::kAlways, " the</s>the"), (Tokens{"▁", "▁the", "</s>", "▁the"}));
  EXPECT_EQ(of(SpacePrefix::kMetaspaceAlways, " the</s>the"), (Tokens{"▁the", "</s>", "▁the"}));
  EXPECT_EQ(of(SpacePrefix::kMetaspaceFirst, "the</s>the"), (Tokens{"▁the", "</s>", "t", "he"}));
  EXPECT_EQ(of(SpacePrefix::kMetaspaceFirst, "</s>the"), (Tokens{"</s>", "t", "he"}));
}

TEST(ModelTokenizers, PartsOfADocumentGetNoSpaceInFront) {
  for (const TokenizerParts& parts : all_kinds()) {
    const auto tokenizer = make_tokenizer(parts, "test");
    const std::string text = "the ab. the\u4e2d\u00e9  he 12";
    std::vector<int32_t> whole;
    tokenizer->encode_document_to(text, whole);
    for (size_t cut = text.find(' '); cut != std::string::npos; cut = text.find(' ', cut + 1)) {
      if (text[cut - 1] == ' ') continue;
      std::vector<int32_t> pieces;
      tokenizer->encode_part_to(text.substr(0, cut), true, pieces);
      tokenizer->encode_part_to(text.substr(cut), false, pieces);
      EXPECT_EQ(pieces, whole) << cut;
    }
  }
}

TEST(ModelTokenizers, SpansGetASpaceByWhatComesBefore) {
  const auto of = [](SpacePrefix prefix, std::string_view text, Before before) {
    const TokenizerParts parts = sentence_piece_parts(prefix);
    std::vector<int32_t> ids = {7};
    make_tokenizer(parts, "test")->encode_span_to(text, before, ids);
    Tokens tokens;
    for (size_t i = 1; i < ids.size(); ++i) tokens.push_back(parts.tokens[static_cast<size_t>(ids[i])]);
    return tokens;
  };
  for (const SpacePrefix prefix : {SpacePrefix::kAlways, SpacePrefix::kMetaspaceAlways}) {
    EXPECT_EQ(of(prefix, "the</s>the", Before::kNothing), (Tokens{"▁the", "</s>", "▁the"}));
    EXPECT_EQ(of(prefix, "the</s>the", Before::kAddedToken), (Tokens{"▁the", "</s>", "▁the"}));
    EXPECT_EQ(of(prefix, "the</s>the", Before::kText), (Tokens{"t", "he", "</s>", "▁the"}));
  }
  EXPECT_EQ(of(SpacePrefix::kMetaspaceFirst, "the", Before::kNothing), (Tokens{"▁the"}));
  EXPECT_EQ(of(SpacePrefix::kMetaspaceFirst, "the", Before::kAddedToken), (Tokens{"t", "he"}));
  EXPECT_EQ(of(SpacePrefix::kMetaspaceFirst, "the", Before::kText), (Tokens{"t", "he"}));
}

// So that a conversation that is encoded turn by turn has the ids of one that is encoded at once.
TEST(ModelTokenizers, SpansAfterAnAddedTokenGiveTheIdsOfTheWholeText) {
  for (const TokenizerParts& parts : all_kinds()) {
    const auto tokenizer = make_tokenizer(parts, "test");
    if (tokenizer->added_tokens().empty()) continue;
    const std::string token = tokenizer->added_tokens()[0].content;
    std::vector<int32_t> ids;
    tokenizer->encode_span_to("ab the" + token, Before::kNothing, ids);
    tokenizer->encode_span_to("the ab", Before::kAddedToken, ids);
    EXPECT_EQ(ids, tokenizer->encode("ab the" + token + "the ab"));
  }
}

TEST(ModelTokenizers, DecodingRestoresTheText) {
  for (const TokenizerParts& parts : all_kinds()) {
    const auto tokenizer = make_tokenizer(parts, "test");
    const bool metaspace = parts.space_prefix > SpacePrefix::kAlways;
    for (const std::string& text : test::hard_texts()) {
      if (parts.normalizer == NormalizerKind::kNfc && text.find("e\u0301") != std::string::npos) continue;
      const bool loses_space = metaspace && text.starts_with(' ');
      EXPECT_EQ(tokenizer->decode(tokenizer->encode(text)), loses_space ? text.substr(1) : text);
    }
  }
}

// The whole text is one word for SentencePiece; cutting it must not change what merges. The twin is BpeMerges alone.
TEST(ModelTokenizers, CutsDoNotChangeTheMerges) {
  const TokenizerParts parts = sentence_piece_parts(SpacePrefix::kNever);
  const auto tokenizer = make_tokenizer(parts, "test");
  std::vector<Merge> merges;
  for (const MergeText& merge : parts.merges) {
    merges.push_back({test::id_of(parts, merge.left), test::id_of(parts, merge.right),
                      test::id_of(parts, merge.left + merge.right)});
  }
  const BpeMerges all(merges);
  MergeScratch scratch;
  std::mt19937 generator(5);
  const std::vector<std::string> characters = {"t", "h", "e", "a", "b", "c", " ", " ", "\u00e9", "\u4e2d"};
  for (int i = 0; i < 5000; ++i) {
    std::string text;
    std::vector<int32_t> symbols;
    for (size_t n = generator() % 40; n > 0; --n) {
      const std::string& character = characters[generator() % characters.size()];
      text += character;
      symbols.push_back(test::id_of(parts, character == " " ? "\u2581" : character));
    }
    std::vector<int32_t> expected;
    all.apply(symbols, scratch, expected);
    ASSERT_EQ(tokenizer->encode(text), expected) << text;
  }
}

TEST(ModelTokenizers, AMegabyteOfSentencePieceTakesAboutASecond) {
  const auto tokenizer = make_tokenizer(sentence_piece_parts(), "test");
  std::string text;
  while (text.size() < (size_t{1} << 20)) text += "the";
  EXPECT_EQ(tokenizer->decode(tokenizer->encode(text)), text);
  const std::string spaces(size_t{1} << 20, ' ');
  EXPECT_EQ(tokenizer->decode(tokenizer->encode(spaces)), spaces);
}

TEST(ModelTokenizers, UnknownCharactersWithoutByteFallback) {
  TokenizerParts parts = sentence_piece_parts();
  parts.byte_fallback = false;
  EXPECT_EQ(make_tokenizer(parts, "test")->encode("zz.z"),
            (std::vector<int32_t>{test::id_of(parts, "\u2581"), 0, test::id_of(parts, "."), 0}));
  parts.fuse_unknown = false;
  EXPECT_EQ(make_tokenizer(parts, "test")->encode("zz").size(), 3u);
  parts.unk.reset();
  EXPECT_EQ(error_of([&] { make_tokenizer(parts, "test"); }),
            "[tokenizer] test: expected byte_fallback or an unknown token, found neither");
}

// SmolLM2 has no token for some bytes: they are left out, as Hugging Face does it.
TEST(ModelTokenizers, BytesWithoutATokenAreLeftOut) {
  for (const PretokenizerKind kind : {PretokenizerKind::kDigitsGpt2, PretokenizerKind::kGpt2}) {
    TokenizerParts parts = byte_level_parts(kind);
    parts.tokens[static_cast<size_t>(test::id_of(parts, to_alphabet("\x04")))] = "unused4";
    const auto tokenizer = make_tokenizer(parts, "test");
    EXPECT_EQ(tokenizer->decode(tokenizer->encode("a\x04z")), "az");
  }
  TokenizerParts parts = byte_level_parts(PretokenizerKind::kGpt2);
  parts.tokens[static_cast<size_t>(test::id_of(parts, "q"))] = "unusedq";
  EXPECT_EQ(error_of([&] { make_tokenizer(parts, "test"); }),
            "[tokenizer] test: expected a token for each byte of ordinary text, found none for 0x71");
}

TEST(ModelTokenizers, PartsAndTokenizerJsonRoundTrip) {
  for (const TokenizerParts& parts : all_kinds()) {
    const auto tokenizer = make_tokenizer(parts, "test");
    const auto again = make_tokenizer(tokenizer->parts(), "again");
    const auto read = Tokenizer::from_json(tokenizer->to_json(), "json");
    EXPECT_EQ(read->to_json(), tokenizer->to_json());
    EXPECT_EQ(again->to_json(), tokenizer->to_json());
    EXPECT_EQ(make_tokenizer(read->parts(), "read")->to_json(), tokenizer->to_json());
    EXPECT_EQ(static_cast<const TokenizerRules&>(read->parts()), static_cast<const TokenizerRules&>(parts));
    for (const Tokenizer* other : {again.get(), read.get()}) {
      EXPECT_EQ(other->digest(), tokenizer->digest());
      EXPECT_EQ(other->begin_of_text(), tokenizer->begin_of_text());
      EXPECT_EQ(other->end_of_text(), tokenizer->end_of_text());
      for (const std::string& text : test::hard_texts()) EXPECT_EQ(other->encode(text), tokenizer->encode(text));
    }
  }
}

TEST(ModelTokenizers, ByteAndCharTokenizersHaveParts) {
  const ByteTokenizer byte;
  EXPECT_EQ(make_tokenizer(byte.parts(), "byte")->name(), "byte");
  const auto character = CharTokenizer::from_text("ab \u00e9\u00ea\u4e2d\u4e00\U0001f600", "text");
  const TokenizerParts parts = character->parts();
  EXPECT_EQ(parts.merges.size(), 2u + 3u + 3u);  // the two of Chinese share neither bytes, those of Latin-1 the first
  const auto again = make_tokenizer(parts, "char");
  EXPECT_EQ(again->name(), "char");
  EXPECT_EQ(again->digest(), character->digest());
}

TEST(ModelTokenizers, UnusedTokens) {
  TokenizerParts parts = byte_level_parts(PretokenizerKind::kGpt2);
  const size_t size = parts.tokens.size();
  test::add_token(parts, "[PAD1]", TokenType::kUnused);
  test::add_token(parts, "last");
  test::add_token(parts, "[PAD2]", TokenType::kUnused);
  const auto tokenizer = make_tokenizer(parts, "test");
  EXPECT_EQ(static_cast<size_t>(tokenizer->vocabulary_size()), size + 2);  // padding at the end is not a token
  EXPECT_EQ(tokenizer->bytes_of(static_cast<int32_t>(size)), "");
  const auto read = Tokenizer::from_json(tokenizer->to_json(), "json");
  EXPECT_EQ(read->digest(), tokenizer->digest());
  EXPECT_EQ(read->parts().types[size], TokenType::kUnused);
}

TEST(ModelTokenizers, EndOfTextCanBeChosen) {
  const auto tokenizer = make_tokenizer(byte_level_parts(PretokenizerKind::kGpt2), "test");
  const std::string json = tokenizer->to_json();
  EXPECT_EQ(Tokenizer::from_json(json, "json")->end_of_text(), 0);
  const auto chat = Tokenizer::from_json(json, "json", "<|im_start|>");
  EXPECT_EQ(chat->end_of_text(), 1);
  EXPECT_EQ(Tokenizer::from_json(chat->to_json(), "json")->end_of_text(), 1);
  EXPECT_NE(chat->digest(), tokenizer->digest());
  EXPECT_EQ(Tokenizer::from_json(chat->to_json(), "json", "<|endoftext|>")->end_of_text(), 0);
  EXPECT_EQ(error_of([&] { Tokenizer::from_json(json, "json", "</s>"); }),
            "[tokenizer] json: expected an added token that ends a text, found none that is \"</s>\"");
  TokenizerParts parts = byte_level_parts(PretokenizerKind::kGpt2);
  parts.eos = 1;
  EXPECT_EQ(make_tokenizer(parts, "test")->to_json(), make_tokenizer(chat->parts(), "test")->to_json());
}

TEST(ModelTokenizers, EndOfTextComesFromTheConfigBesideTheFile) {
  const quern::test::Folder folder;
  const auto write = [&](const char* name, const std::string& text) { folder.write(name, text); };
  write("tokenizer.json", make_tokenizer(byte_level_parts(PretokenizerKind::kGpt2), "test")->to_json());
  const std::string path = folder.path().string();
  EXPECT_EQ(Tokenizer::load_from(path)->end_of_text(), 0);
  write("tokenizer_config.json", R"({"eos_token": "<|im_start|>"})");
  EXPECT_EQ(Tokenizer::load_from(path)->end_of_text(), 1);
  write("tokenizer_config.json", R"({"eos_token": {"content": "<|im_start|>", "special": true}})");
  EXPECT_EQ(Tokenizer::load_from(path + "/tokenizer.json")->end_of_text(), 1);
  write("tokenizer_config.json", R"({"eos_token": "no token"})");
  EXPECT_EQ(Tokenizer::load_from(path)->end_of_text(), 0);
  write("tokenizer_config.json", "{");
  EXPECT_EQ(error_of([&] { Tokenizer::load_from(path); }).find("[tokenizer] " + path + "/tokenizer_config.json: "), 0u);
}

TEST(ModelTokenizers, GgufNames) {
  for (const TokenizerParts& parts : all_kinds()) {
    const GgufTokenizerNames names = gguf_names(parts);
    const TokenizerParts implied = parts_for_gguf(names.model, names.pre, "file");
    EXPECT_EQ(implied.pretokenizer, parts.pretokenizer);
    EXPECT_EQ(implied.normalizer, parts.normalizer);
    EXPECT_EQ(implied.ignore_merges, parts.ignore_merges);
    EXPECT_EQ(implied.byte_fallback, parts.byte_fallback);
  }
  EXPECT_EQ(parts_for_gguf("gpt2", "starcoder", "f").pretokenizer, PretokenizerKind::kDigitsGpt2);
  EXPECT_EQ(error_of([] { parts_for_gguf("gpt2", "falcon", "f.gguf"); }),
            "[tokenizer] f.gguf: tokenizer.ggml.pre: expected gpt-2, smollm, starcoder, llama-bpe or qwen2, found "
            "\"falcon\"");
  EXPECT_EQ(error_of([] { parts_for_gguf("bert", "", "f.gguf"); }),
            "[tokenizer] f.gguf: tokenizer.ggml.model: expected gpt2 or llama, found \"bert\"");
}

TEST(ModelTokenizers, ScoresAndMergesAreInverse) {
  const TokenizerParts parts = sentence_piece_parts();
  const std::vector<float> scores = scores_from_merges(parts);
  EXPECT_EQ(scores[static_cast<size_t>(test::id_of(parts, "\u2581t"))], -1);
  EXPECT_EQ(scores[static_cast<size_t>(test::id_of(parts, "\u2581the"))], -3);
  EXPECT_EQ(scores[1], 0);
  TokenizerParts again = parts;
  again.merges = merges_from_scores(parts.tokens, parts.types, scores, "test");
  const auto one = make_tokenizer(parts, "test"), other = make_tokenizer(again, "test");
  for (const std::string& text : test::hard_texts()) EXPECT_EQ(one->encode(text), other->encode(text));
  EXPECT_EQ(scores_from_merges(again), scores);
  EXPECT_EQ(error_of([&] {
              merges_from_scores(parts.tokens, parts.types, std::span(scores).first(3), "f");
            }).find("[tokenizer] f: expected a type and a score for each of"),
            0u);
}

}  // namespace
}  // namespace quern::data
