// How GGUF files describe tokenizers.
#include <algorithm>
#include <array>
#include <cmath>
#include <tuple>
#include <unordered_map>

#include "core/error.h"
#include "data/tokenizer_parts.h"
#include "data/utf8.h"

namespace quern::data {
namespace {

struct PreName {
  std::string_view name;
  PretokenizerKind kind;
};

// The first name of a kind is the one that is written.
constexpr std::array<PreName, 9> kPreNames = {{{"gpt-2", PretokenizerKind::kGpt2},
                                               {"smollm", PretokenizerKind::kDigitsGpt2},
                                               {"starcoder", PretokenizerKind::kDigitsGpt2},
                                               {"refact", PretokenizerKind::kDigitsGpt2},
                                               {"llama-bpe", PretokenizerKind::kLlama3},
                                               {"llama3", PretokenizerKind::kLlama3},
                                               {"llama-v3", PretokenizerKind::kLlama3},
                                               {"qwen2", PretokenizerKind::kQwen2},
                                               {"deepseek-r1-qwen", PretokenizerKind::kQwen2}}};

// Dividing a token takes quadratic time in its length; SentencePiece makes none of more than 64 bytes by default.
constexpr size_t kMaxTokenBytes = 1024;

// A token as two others.
struct Division {
  float score;
  size_t left_size, right_size;  // in characters
  MergeText merge;
};

size_t characters(std::string_view text) {
  return static_cast<size_t>(
      std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

}  // namespace

GgufTokenizerNames gguf_names(const TokenizerParts& parts) {
  if (parts.model == TokenizerModel::kSentencePieceBpe) return {"llama", "default"};
  const auto found = std::ranges::find(kPreNames, parts.pretokenizer, &PreName::kind);
  return {"gpt2", found == kPreNames.end() ? kPreNames.front().name : found->name};
}

TokenizerParts parts_for_gguf(std::string_view model, std::string_view pre, std::string_view where) {
  TokenizerParts parts;
  if (model == "llama") {
    parts.model = TokenizerModel::kSentencePieceBpe;
    parts.pretokenizer = PretokenizerKind::kNone;
    parts.space_prefix = SpacePrefix::kAlways;
    parts.strip_space = parts.byte_fallback = parts.fuse_unknown = parts.add_bos = true;
    if (pre.empty() || pre == "default") return parts;
    throw Error("[tokenizer] {}: tokenizer.ggml.pre: expected default with model llama, found {}", where,
                in_quotes(pre));
  }
  if (model != "gpt2") {
    throw Error("[tokenizer] {}: tokenizer.ggml.model: expected gpt2 or llama, found {}", where, in_quotes(model));
  }
  const auto found = std::ranges::find(kPreNames, pre, &PreName::name);
  if (found == kPreNames.end()) {
    throw Error("[tokenizer] {}: tokenizer.ggml.pre: expected gpt-2, smollm, starcoder, llama-bpe or qwen2, found {}",
                where, pre.empty() ? "nothing" : in_quotes(pre));
  }
  parts.pretokenizer = found->kind;
  if (found->kind == PretokenizerKind::kQwen2) parts.normalizer = NormalizerKind::kNfc;
  if (found->kind == PretokenizerKind::kLlama3) parts.ignore_merges = parts.add_bos = true;
  return parts;
}

std::vector<MergeText> merges_from_scores(std::span<const std::string> tokens, std::span<const TokenType> types,
                                          std::span<const float> scores, std::string_view where) {
  if (scores.size() != tokens.size() || types.size() != tokens.size()) {
    throw Error("[tokenizer] {}: expected a type and a score for each of {} tokens, found {} and {}", where,
                tokens.size(), types.size(), scores.size());
  }
  std::unordered_map<std::string_view, size_t> id_of;
  for (size_t id = 0; id < tokens.size(); ++id) {
    if (std::isnan(scores[id])) throw Error("[tokenizer] {}: the score of token {} is not a number", where, id);
    if (tokens[id].size() > kMaxTokenBytes) {
      throw Error("[tokenizer] {}: token {}: expected at most {} bytes, found {}", where, id, kMaxTokenBytes,
                  tokens[id].size());
    }
    if (types[id] == TokenType::kNormal) id_of.emplace(tokens[id], id);
  }
  std::vector<Division> divisions;
  for (size_t id = 0; id < tokens.size(); ++id) {
    if (types[id] != TokenType::kNormal) continue;
    const std::string_view token = tokens[id];
    for (size_t at = 1; at < token.size(); ++at) {
      if ((static_cast<unsigned char>(token[at]) & 0xC0) == 0x80) continue;
      const std::string_view left = token.substr(0, at), right = token.substr(at);
      if (!id_of.contains(left) || !id_of.contains(right)) continue;
      divisions.push_back({scores[id], characters(left), characters(right), {std::string(left), std::string(right)}});
    }
  }
  // As Hugging Face orders them when it converts SentencePiece models.
  std::ranges::stable_sort(divisions, [](const Division& a, const Division& b) {
    return std::tuple(a.score, a.left_size, a.right_size) > std::tuple(b.score, b.left_size, b.right_size);
  });
  std::vector<MergeText> merges;
  merges.reserve(divisions.size());
  for (Division& division : divisions) merges.push_back(std::move(division.merge));
  return merges;
}

std::vector<float> scores_from_merges(const TokenizerParts& parts) {
  std::unordered_map<std::string_view, size_t> id_of;
  for (size_t id = 0; id < parts.tokens.size(); ++id) id_of.emplace(parts.tokens[id], id);
  std::vector<float> scores(parts.tokens.size());
  std::vector<bool> has_score(parts.tokens.size());
  // Counted by results, not by merges: floats are exact up to 2^24, and a vocabulary has fewer tokens than merges.
  float score = 0;
  for (const MergeText& merge : parts.merges) {
    const auto found = id_of.find(merge.left + merge.right);
    if (found == id_of.end() || has_score[found->second]) continue;
    has_score[found->second] = true;
    scores[found->second] = --score;
  }
  return scores;
}

}  // namespace quern::data
