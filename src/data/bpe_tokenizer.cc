#include "data/bpe_tokenizer.h"

#include <algorithm>

#include "data/bpe_check.h"
#include "data/nfc.h"
#include "data/pretokenizer.h"
#include "data/token_buffer.h"
#include "data/tokenizer_json.h"
#include "data/word_cache.h"

namespace quern::data {
namespace {

std::string with_spaces(std::string_view token) {
  std::string text;
  for (size_t at = 0; at < token.size();) {
    const size_t found = std::min(token.find(kSpaceSymbol, at), token.size());
    text += token.substr(at, found - at);
    if (found < token.size()) text += ' ';
    at = found + kSpaceSymbol.size();
  }
  return text;
}

std::string decoded(const BpeModel& model, size_t id, bool is_added) {
  const std::string& token = model.tokens[id];
  if (!model.is_sentence_piece() || is_added) return token;
  const int byte = byte_of_token(token);
  if (byte >= 0 && model.rules.byte_fallback)
    return std::string(1, static_cast<char>(static_cast<unsigned char>(byte)));
  return with_spaces(token);
}

// Runs before any member is constructed, so that they can rely on a checked model.
TokenTable checked_tokens(BpeModel& model, std::string_view where) {
  check_bpe_model(model, where);
  const std::vector<bool> is_added = which_are_added(model);
  TokenTable tokens;
  for (size_t id = 0; id < model.tokens.size(); ++id) tokens.add(decoded(model, id, is_added[id]));
  return tokens;
}

TokenTable spelled_tokens(const BpeModel& model) {
  TokenTable tokens;
  if (!model.is_sentence_piece()) return tokens;
  for (const std::string& token : model.tokens) tokens.add(token);
  return tokens;
}

std::optional<int32_t> end_of_text_in(const BpeModel& model) {
  if (model.end_of_text) return model.end_of_text;
  const auto found = std::ranges::find(model.added, kEndOfText, &AddedToken::content);
  return found == model.added.end() ? std::nullopt : std::optional(found->id);
}

}  // namespace

struct BpeTokenizer::Scratch {
  explicit Scratch(PretokenizerKind kind) : pretokenizer(kind) {}

  Pretokenizer pretokenizer;
  WordCache cache;
  std::vector<int32_t> symbols;
  MergeScratch merging;
  std::string normalized;
  std::string prefixed;
};

BpeTokenizer::BpeTokenizer(BpeModel model, std::string_view where, std::string json)
    : Tokenizer(checked_tokens(model, where), model.rules.strip_space),
      json_(std::move(json)),
      rules_(model.rules),
      spelled_(spelled_tokens(model)),
      unused_(model.unused),
      merges_(model.merges),
      added_(model.added),
      unk_(model.unk),
      bos_(model.bos ? model.bos : model.begin_of_text),
      pad_(model.pad),
      begin_of_text_(model.begin_of_text),
      end_of_text_(end_of_text_in(model)),
      all_(added_set(true)),
      ordinary_(added_set(false)),
      symbols_(model),
      cuts_(model.is_sentence_piece() ? std::make_unique<CharacterCuts>(model) : nullptr) {
  if (!rules_.ignore_merges) return;
  const std::vector<bool> is_added = which_are_added(model);
  for (int32_t id = 0; id < tokens().size(); ++id) {
    if (!is_added[static_cast<size_t>(id)]) whole_piece_.emplace(tokens()[id], id);
  }
}

BpeTokenizer::~BpeTokenizer() = default;

// Documents do not contain special tokens. A file need not mark the end-of-text token as special.
BpeTokenizer::AddedSet BpeTokenizer::added_set(bool with_special) const {
  std::vector<AddedToken> verbatim;
  std::vector<AddedToken> normalized;
  for (const AddedToken& token : added_) {
    const bool special = token.special || token.content == kEndOfText || token.id == end_of_text_;
    if (special && !with_special) continue;
    if (!token.normalized) {
      verbatim.push_back(token);
      continue;
    }
    std::string scratch;
    normalized.push_back(token);
    normalized.back().content = normalize(token.content, true, scratch);
  }
  return {AddedTokens(std::move(verbatim)), AddedTokens(std::move(normalized))};
}

// Cutting text at a space or line break is right for GPT-2's expression; Llama 3's has line breaks after punctuation in
// one piece, and the neighbours of spaces in SentencePiece's tokens are usually before words.
CutRule BpeTokenizer::cut_rule() const noexcept {
  const bool gpt2 =
      rules_.pretokenizer == PretokenizerKind::kGpt2 || rules_.pretokenizer == PretokenizerKind::kDigitsGpt2;
  return gpt2 ? CutRule::kBeforeWhiteSpace : CutRule::kBeforeSpace;
}

void BpeTokenizer::encode(std::string_view text, const AddedSet& added, Before before,
                          std::vector<int32_t>& ids) const {
  const size_t ids_before = ids.size();
  const bool starts = before == Before::kNothing;
  std::unique_ptr<Scratch> scratch = take_scratch();
  try {
    for (bool is_first = before != Before::kAddedToken; !text.empty(); is_first = false) {
      const AddedTokens::Found found = added.verbatim.find(text);
      encode_section(text.substr(0, found.at), added.normalized, starts, is_first, *scratch, ids);
      text.remove_prefix(found.at);
      if (found.token == nullptr) continue;
      ids.push_back(found.token->id);
      text.remove_prefix(found.token->content.size());
    }
  } catch (...) {
    ids.resize(ids_before);
    throw;
  }
  give_back(std::move(scratch));
}

// The text as the normalised added tokens see it. `add_space`: a space in front of it, if the rules have one there.
std::string_view BpeTokenizer::normalize(std::string_view text, bool add_space, std::string& scratch) const {
  if (rules_.normalizer == NormalizerKind::kNfc) return to_nfc(text, scratch);
  if (rules_.space_prefix != SpacePrefix::kAlways || !add_space) return text;
  scratch = " ";
  scratch += text.find(kSpaceSymbol) == std::string_view::npos ? text : with_spaces(text);
  return scratch;
}

// Text between added tokens; the first section of a text that continues a document gets no space in front.
void BpeTokenizer::encode_section(std::string_view text, const AddedTokens& added, bool starts, bool is_first,
                                  Scratch& scratch, std::vector<int32_t>& ids) const {
  if (text.empty()) return;
  text = normalize(text, starts || !is_first, scratch.normalized);
  while (!text.empty()) {
    const AddedTokens::Found found = added.find(text);
    encode_plain(text.substr(0, found.at), starts, is_first, scratch, ids);
    text.remove_prefix(found.at);
    is_first = false;
    if (found.token == nullptr) continue;
    ids.push_back(found.token->id);
    text.remove_prefix(found.token->content.size());
  }
}

void BpeTokenizer::encode_plain(std::string_view text, bool starts, bool is_first, Scratch& scratch,
                                std::vector<int32_t>& ids) const {
  if (text.empty()) return;
  if (cuts_ == nullptr) {
    scratch.pretokenizer.start(text);
    for (std::string_view piece; scratch.pretokenizer.next(piece);) encode_piece(piece, scratch, ids);
    return;
  }
  const bool prefix = (rules_.space_prefix == SpacePrefix::kMetaspaceAlways && (starts || !is_first)) ||
                      (rules_.space_prefix == SpacePrefix::kMetaspaceFirst && starts && is_first);
  if (prefix && !text.starts_with(' ') && !text.starts_with(kSpaceSymbol)) {
    scratch.prefixed = " ";
    text = scratch.prefixed += text;
  }
  while (!text.empty()) {
    const size_t length = cuts_->piece_length(text);
    encode_piece(text.substr(0, length), scratch, ids);
    text.remove_prefix(length);
  }
}

void BpeTokenizer::encode_piece(std::string_view piece, Scratch& scratch, std::vector<int32_t>& ids) const {
  if (piece.size() > WordCache::kMaxWordBytes) return merge_piece(piece, scratch, ids);
  const WordCache::Key key(piece);
  if (const auto known = scratch.cache.find(key)) {
    for (const int32_t id : *known) ids.push_back(id);  // most often one: not worth a call of memmove
    return;
  }
  const size_t before = ids.size();
  merge_piece(piece, scratch, ids);
  scratch.cache.put(key, std::span(ids).subspan(before));
}

void BpeTokenizer::merge_piece(std::string_view piece, Scratch& scratch, std::vector<int32_t>& ids) const {
  if (rules_.ignore_merges) {
    if (const auto whole = whole_piece_.find(piece); whole != whole_piece_.end()) return ids.push_back(whole->second);
  }
  scratch.symbols.clear();
  symbols_.append(piece, scratch.symbols);
  merges_.apply(scratch.symbols, scratch.merging, ids);
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
  return std::make_unique<Scratch>(rules_.pretokenizer);
}

void BpeTokenizer::give_back(std::unique_ptr<Scratch> scratch) const {
  const std::lock_guard lock(mutex_);
  idle_.push_back(std::move(scratch));
}

std::string BpeTokenizer::to_json() const { return json_.empty() ? tokenizer_json(parts()) : json_; }

}  // namespace quern::data
