#include "data/bpe_trainer.h"

#include <algorithm>
#include <queue>

#include "core/error.h"
#include "data/byte_alphabet.h"
#include "data/pair_index.h"

namespace quern::data {
namespace {

struct Candidate {
  uint64_t count;
  TokenPair pair;

  // For std::priority_queue, whose top is the largest element.
  friend bool operator<(const Candidate& a, const Candidate& b) {
    return a.count != b.count ? a.count < b.count : a.pair > b.pair;
  }
};

class Training {
 public:
  explicit Training(PairIndex pairs) : pairs_(std::move(pairs)) {
    for (const uint8_t byte : bytes_in_alphabet_order()) add_token(std::string(1, static_cast<char>(byte)));
    enqueue(pairs_.pairs());
  }

  // Merges until there are `size` tokens.
  void grow_to(size_t size, uint64_t minimum_count) {
    while (model_.tokens.size() < size && !queue_.empty()) {
      const Candidate best = queue_.top();
      queue_.pop();
      const uint64_t now = pairs_.count(best.pair);
      // A merge makes some pairs rarer; their entries are corrected when they reach the top.
      if (now != best.count) {
        if (now > 0) queue_.push({now, best.pair});
        continue;
      }
      if (now < minimum_count) return;
      merge(best.pair);
    }
  }

  void add(const std::string& content) {
    const auto id = static_cast<int32_t>(model_.tokens.size());
    model_.added.push_back({.content = content, .id = id});
    model_.tokens.push_back(content);
  }

  BpeModel model() && { return std::move(model_); }

 private:
  int32_t add_token(const std::string& bytes) {
    const auto [found, is_new] = id_of_.emplace(bytes, static_cast<int32_t>(model_.tokens.size()));
    if (is_new) model_.tokens.push_back(bytes);
    return found->second;
  }

  void merge(TokenPair pair) {
    const auto left = static_cast<uint32_t>(pair >> 32);
    const auto right = static_cast<uint32_t>(pair);
    const int32_t result = add_token(model_.tokens[left] + model_.tokens[right]);
    model_.merges.push_back({static_cast<int32_t>(left), static_cast<int32_t>(right), result});
    enqueue(pairs_.merge(pair, result));
  }

  void enqueue(const std::vector<TokenPair>& pairs) {
    for (const TokenPair pair : pairs) queue_.push({pairs_.count(pair), pair});
  }

  PairIndex pairs_;
  BpeModel model_;
  std::unordered_map<std::string, int32_t> id_of_;
  std::priority_queue<Candidate> queue_;
};

std::array<int32_t, 256> ids_in_alphabet_order() {
  std::array<int32_t, 256> ids{};
  for (size_t id = 0; id < ids.size(); ++id) ids[bytes_in_alphabet_order()[id]] = static_cast<int32_t>(id);
  return ids;
}

}  // namespace

BpeTrainerOptions with_end_of_text(uint64_t vocabulary_size) {
  return {.vocabulary_size = static_cast<int32_t>(std::min<uint64_t>(vocabulary_size, INT32_MAX)),
          .added_tokens = {std::string(kEndOfText)}};
}

void BpeTrainer::add(std::string_view text) {
  pretokenizer_.start(text);
  std::string_view piece;
  while (pretokenizer_.next(piece)) {
    const auto found = counts_.find(piece);
    if (found != counts_.end()) {
      ++found->second;
    } else {
      counts_.emplace(piece, 1);
    }
  }
}

std::unique_ptr<BpeTokenizer> BpeTrainer::train(const BpeTrainerOptions& options) const {
  const size_t fixed = 256 + options.added_tokens.size();
  if (options.vocabulary_size < 0 || static_cast<size_t>(options.vocabulary_size) < fixed) {
    throw Error("[tokenizer] bpe: expected a vocabulary of at least {} (256 bytes, {} added tokens), found {}", fixed,
                options.added_tokens.size(), options.vocabulary_size);
  }
  if (counts_.empty()) throw Error("[tokenizer] bpe: expected text to learn from, found none");

  const std::array<int32_t, 256> id_of_byte = ids_in_alphabet_order();
  PairIndex pairs;
  std::vector<int32_t> word;
  size_t bytes = 0;
  for (const auto& [piece, count] : counts_) {
    bytes += piece.size();
    if (bytes >= UINT32_MAX)
      throw Error("[tokenizer] bpe: expected less than 2^32 bytes of different words, found more");
    word.clear();
    for (const char byte : piece) word.push_back(id_of_byte[static_cast<unsigned char>(byte)]);
    pairs.add_word(word, count);
  }

  Training training(std::move(pairs));
  training.grow_to(static_cast<size_t>(options.vocabulary_size) - options.added_tokens.size(), options.minimum_count);
  for (const std::string& content : options.added_tokens) training.add(content);
  return std::make_unique<BpeTokenizer>(std::move(training).model(), "bpe");
}

}  // namespace quern::data
