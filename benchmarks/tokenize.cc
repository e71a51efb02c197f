// Tokenizers of every kind on generated text, with caches filled: megabytes of text per second, against splitting the
// text only, and with several threads against one. No bars: what counts is the speed beside other libraries
// (peers/tokenizers_speed.py) and beside training, which needs a few MB/s.
#include <fmt/format.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "benchmarks/workloads.h"
#include "data/bpe_trainer.h"
#include "data/byte_alphabet.h"
#include "data/pretokenizer.h"
#include "data/token_buffer.h"
#include "data/utf8.h"

namespace quern::bench {
namespace {

using data::PretokenizerKind;
using data::TokenizerParts;
using data::TokenType;

constexpr size_t kTextBytes = size_t{4} << 20;
constexpr size_t kPieceBytes = size_t{64} << 10;  // as streams of training data

// Words with the frequencies of a natural language (the n-th is n times as rare as the first), as prose with numbers,
// as code, and one in sixteen lines in scripts beyond ASCII.
std::string make_text(size_t bytes) {
  constexpr std::string_view kSyllables[] = {"ba",  "ten", "lo",  "ri", "ka", "sur", "me", "no",
                                             "the", "ing", "pro", "al", "et", "vo",  "qu", "x"};
  constexpr std::string_view kForeign = "Привет, мир! 中文没有空格。 naïve café über 한국어 हिन्दी 😀 ";
  uint64_t state = 1;
  const auto random = [&state](uint64_t n) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % n;
  };
  std::vector<std::string> words(20000);
  for (std::string& word : words) {
    for (uint64_t n = 1 + random(4); n > 0; --n) word += kSyllables[random(std::size(kSyllables))];
  }
  std::string text;
  while (text.size() < bytes) {
    const uint64_t kind = random(16);
    if (kind == 0) text += kForeign;
    for (uint64_t n = 4 + random(12); n > 0; --n) {
      const uint64_t bound = 1 + random(words.size());
      text += words[random(bound)];
      text += kind < 3 ? "(i, 12);\n    " : random(9) == 0 ? ", " : random(40) == 0 ? " 1984 " : " ";
    }
    text += ".\n";
  }
  return text;
}

TokenizerParts byte_level(const data::Tokenizer& trained, PretokenizerKind kind) {
  TokenizerParts parts = trained.parts();
  parts.pretokenizer = kind;
  if (kind == PretokenizerKind::kQwen2) parts.normalizer = data::NormalizerKind::kNfc;
  parts.ignore_merges = kind == PretokenizerKind::kLlama3;
  return parts;
}

// The same merges as SentencePiece would spell them, as far as they are of whole characters.
TokenizerParts sentence_piece(const data::Tokenizer& trained) {
  TokenizerParts parts = data::parts_for_gguf("llama", "default", "bench");
  parts.add_bos = false;
  const auto add = [&](std::string token, TokenType type) {
    parts.tokens.push_back(std::move(token));
    parts.types.push_back(type);
  };
  add("<unk>", TokenType::kUnknown);
  parts.unk = 0;
  for (int byte = 0; byte < 256; ++byte) add(fmt::format("<0x{:02X}>", byte), TokenType::kByte);
  const auto spelled = [](const std::string& token) {
    std::string text;
    const std::string bytes = data::from_alphabet(token).value_or("");
    for (const char c : bytes) c == ' ' ? text += "\u2581" : text += c;
    return data::valid_utf8_length(bytes) == bytes.size() ? text : std::string();
  };
  const TokenizerParts bytes = trained.parts();
  for (size_t id = 0; id < bytes.tokens.size(); ++id) {
    const std::string token = bytes.types[id] == TokenType::kNormal ? spelled(bytes.tokens[id]) : std::string();
    if (!token.empty()) add(token, TokenType::kNormal);
  }
  for (const data::MergeText& merge : bytes.merges) {
    const std::string left = spelled(merge.left), right = spelled(merge.right);
    if (!left.empty() && !right.empty()) parts.merges.push_back({left, right});
  }
  return parts;
}

size_t encode_all(const data::Tokenizer& tokenizer, const std::vector<std::string_view>& pieces, size_t threads) {
  std::atomic<size_t> next{0}, tokens{0};
  const auto work = [&] {
    std::vector<int32_t> ids;
    for (size_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < pieces.size();) {
      ids.clear();
      tokenizer.encode_document_to(pieces[i], ids);
      tokens.fetch_add(ids.size(), std::memory_order_relaxed);
    }
  };
  std::vector<std::jthread> others;
  for (size_t i = 1; i < threads; ++i) others.emplace_back(work);
  work();
  others.clear();
  return tokens;
}

void check(Context& context, const std::string& name, const data::Tokenizer& tokenizer, std::string_view text) {
  std::vector<int32_t> ids;
  tokenizer.encode_document_to(text, ids);
  if (tokenizer.decode(ids) != text) context.wrong_answer(name, "decoding does not restore the text");
}

void bench_kind(Context& context, const std::string& kind, const TokenizerParts& parts,
                const std::vector<std::string_view>& pieces, size_t bytes) {
  const std::string name = "tokenize/" + kind;
  if (!context.wants(name)) return;
  const std::unique_ptr<data::Tokenizer> tokenizer = make_tokenizer(parts, kind);
  check(context, name, *tokenizer, pieces.front());
  const auto split = [&] {
    const bool whole = parts.pretokenizer == PretokenizerKind::kNone;
    data::Pretokenizer pretokenizer(whole ? PretokenizerKind::kGpt2 : parts.pretokenizer);
    for (const std::string_view piece : pieces) {
      pretokenizer.start(piece);
      for (std::string_view word; pretokenizer.next(word);) {
      }
    }
  };
  const auto one = [&] { encode_all(*tokenizer, pieces, 1); };
  const auto all = [&] { encode_all(*tokenizer, pieces, context.threads()); };
  const std::vector<double> times = best_times(context, {one, split, all});
  const double megabytes = static_cast<double>(bytes) * 1e-6;
  context.add(name, megabytes / times[0], "MB/s", "split only", megabytes / times[1]);
  if (context.threads() == 1) return;
  context.add(fmt::format("{}/{}threads", name, context.threads()), megabytes / times[2], "MB/s", "1 thread",
              megabytes / times[0]);
}

}  // namespace

void bench_tokenize(Context& context) {
  const std::string text = make_text(context.quick() ? kTextBytes / 16 : kTextBytes);
  std::vector<std::string_view> pieces;
  for (std::string_view rest = text; !rest.empty(); rest.remove_prefix(pieces.back().size())) {
    pieces.push_back(rest.substr(0, data::piece_length(rest, kPieceBytes, data::CutRule::kBeforeSpace)));
  }
  data::BpeTrainer trainer;
  trainer.add(text);
  const auto trained = trainer.train(data::with_end_of_text(8192));
  bench_kind(context, "gpt2", byte_level(*trained, PretokenizerKind::kGpt2), pieces, text.size());
  bench_kind(context, "smollm", byte_level(*trained, PretokenizerKind::kDigitsGpt2), pieces, text.size());
  bench_kind(context, "llama3", byte_level(*trained, PretokenizerKind::kLlama3), pieces, text.size());
  bench_kind(context, "qwen2", byte_level(*trained, PretokenizerKind::kQwen2), pieces, text.size());
  bench_kind(context, "sentencepiece", sentence_piece(*trained), pieces, text.size());
}

}  // namespace quern::bench
