#include "data/bpe_tokenizer.h"

#include <algorithm>

#include "data/bpe_check.h"
#include "data/pretokenizer.h"
#include "data/tokenizer_json.h"
#include "data/word_cache.h"

namespace quern::data {
namespace {

// Runs before any member is constructed, so that they can rely on a checked model.
TokenTable checked_tokens(const BpeModel& model, std::string_view where) {
  check_bpe_model(model, where);
  TokenTable tokens;
  for (const std::string& bytes : model.tokens) tokens.add(bytes);
  return tokens;
}

// The added tokens that documents may contain. A file need not mark the end-of-text token as special.
std::vector<AddedToken> without_special(std::vector<AddedToken> tokens) {
  std::erase_if(tokens, [](const AddedToken& token) { return token.special || token.content == kEndOfText; });
  return tokens;
}

}  // namespace

struct BpeTokenizer::Scratch {
  Pretokenizer pretokenizer;
  WordCache cache;
  std::vector<int32_t> bytes;
  MergeScratch merging;
};

BpeTokenizer::BpeTokenizer(BpeModel model, std::string_view where)
    : Tokenizer(checked_tokens(model, where)),
      merges_(std::move(model.merges)),
      added_(model.added),
      ordinary_(without_special(model.added)),
      id_of_byte_(ids_of_bytes(model)) {
  const auto found = std::ranges::find(added_.list(), kEndOfText, &AddedToken::content);
  if (found != added_.list().end()) end_of_text_ = found->id;
}

BpeTokenizer::~BpeTokenizer() = default;

void BpeTokenizer::encode_around(std::string_view text, const AddedTokens& added, std::vector<int32_t>& ids) const {
  const size_t before = ids.size();
  std::unique_ptr<Scratch> scratch = take_scratch();
  try {
    while (!text.empty()) {
      const AddedTokens::Found found = added.find(text);
      encode_plain(text.substr(0, found.at), *scratch, ids);
      text.remove_prefix(found.at);
      if (found.token == nullptr) continue;
      ids.push_back(found.token->id);
      text.remove_prefix(found.token->content.size());
    }
  } catch (...) {
    ids.resize(before);
    throw;
  }
  give_back(std::move(scratch));
}

void BpeTokenizer::encode_plain(std::string_view text, Scratch& scratch, std::vector<int32_t>& ids) const {
  scratch.pretokenizer.start(text);
  std::string_view piece;
  while (scratch.pretokenizer.next(piece)) encode_piece(piece, scratch, ids);
}

void BpeTokenizer::encode_piece(std::string_view piece, Scratch& scratch, std::vector<int32_t>& ids) const {
  if (piece.size() > WordCache::kMaxWordBytes) return merge_piece(piece, scratch, ids);
  const WordCache::Key key(piece);
  if (const auto known = scratch.cache.find(key)) {
    ids.insert(ids.end(), known->begin(), known->end());
    return;
  }
  const size_t before = ids.size();
  merge_piece(piece, scratch, ids);
  scratch.cache.put(key, std::span(ids).subspan(before));
}

void BpeTokenizer::merge_piece(std::string_view piece, Scratch& scratch, std::vector<int32_t>& ids) const {
  scratch.bytes.clear();
  for (const char byte : piece) scratch.bytes.push_back(id_of_byte_[static_cast<unsigned char>(byte)]);
  merges_.apply(scratch.bytes, scratch.merging, ids);
}

std::unique_ptr<BpeTokenizer::Scratch> BpeTokenizer::take_scratch() const {
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      std::unique_ptr<Scratch> scratch = std::move(idle_.back());
      idle_.pop_back();
      return scratch;
    }
  }
  return std::make_unique<Scratch>();
}

void BpeTokenizer::give_back(std::unique_ptr<Scratch> scratch) const {
  const std::lock_guard lock(mutex_);
  idle_.push_back(std::move(scratch));
}

std::string BpeTokenizer::to_json() const { return bpe_tokenizer_json(*this); }

}  // namespace quern::data
