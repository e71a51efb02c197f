#include "data/tokenizer_parts.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "core/error.h"
#include "data/bpe_tokenizer.h"
#include "data/byte_alphabet.h"
#include "data/byte_tokenizer.h"
#include "data/char_tokenizer.h"
#include "data/utf8.h"

namespace quern::data {
namespace {

std::string byte_text(size_t byte) {
  return to_alphabet(std::string(1, static_cast<char>(static_cast<unsigned char>(byte))));
}

void check(const TokenizerParts& parts, std::string_view where) {
  if (parts.tokens.empty()) throw Error("[tokenizer] {}: expected tokens, found none", where);
  if (parts.types.size() != parts.tokens.size()) {
    throw Error("[tokenizer] {}: expected a type for each of {} tokens, found {}", where, parts.tokens.size(),
                parts.types.size());
  }
  const bool sentence_piece = parts.model == TokenizerModel::kSentencePieceBpe;
  if (sentence_piece != (parts.pretokenizer == PretokenizerKind::kNone)) {
    throw Error("[tokenizer] {}: expected a pre-tokenizer for byte-level BPE only", where);
  }
  if (sentence_piece ? parts.normalizer != NormalizerKind::kNone
                     : parts.space_prefix != SpacePrefix::kNever || parts.byte_fallback) {
    throw Error("[tokenizer] {}: expected the normalizer, space prefix and byte fallback of one model", where);
  }
}

bool all_normal(const TokenizerParts& parts) {
  return std::ranges::all_of(parts.types, [](TokenType type) { return type == TokenType::kNormal; });
}

bool is_byte_tokenizer(const TokenizerParts& parts) {
  if (parts.tokens.size() != 256 || !parts.merges.empty() || !all_normal(parts)) return false;
  for (size_t byte = 0; byte < 256; ++byte) {
    if (parts.tokens[byte] != byte_text(byte)) return false;
  }
  return true;
}

// The characters of a vocabulary that has nothing else and not all bytes; otherwise none.
std::vector<uint32_t> characters_of(const TokenizerParts& parts) {
  std::vector<uint32_t> characters;
  if (!all_normal(parts)) return characters;
  for (const std::string& token : parts.tokens) {
    const std::optional<std::string> bytes = from_alphabet(token);
    if (!bytes || bytes->empty()) return {};
    const CodePoint first = read_code_point(*bytes, 0);
    if (first.length != bytes->size()) return {};
    characters.push_back(first.value);
  }
  return characters;
}

// The ids of tokens by their text.
class Ids {
 public:
  Ids(const TokenizerParts& parts, std::string_view where) : where_(where) {
    for (size_t id = 0; id < parts.tokens.size(); ++id) {
      if (parts.types[id] == TokenType::kUnused) continue;
      const auto [other, is_new] = id_of_.emplace(parts.tokens[id], static_cast<int32_t>(id));
      if (!is_new) {
        throw Error("[tokenizer] {}: tokens {} and {} are both {}", where, other->second, id,
                    in_quotes(parts.tokens[id]));
      }
    }
  }

  int32_t of(size_t rank, const std::string& token) const {
    const auto found = id_of_.find(token);
    if (found != id_of_.end()) return found->second;
    throw Error("[tokenizer] {}: merge {}: expected tokens of the vocabulary, found {}", where_, rank,
                in_quotes(token));
  }

 private:
  std::string_view where_;
  std::unordered_map<std::string_view, int32_t> id_of_;
};

// A token that ends or starts texts is special even if the file calls it normal: it must not come out of merges.
void make_roles_special(TokenizerParts& parts) {
  for (const std::optional<int32_t>& role : {parts.eos, parts.add_bos ? parts.bos : std::nullopt}) {
    if (!role || *role < 0 || static_cast<size_t>(*role) >= parts.types.size()) continue;
    TokenType& type = parts.types[static_cast<size_t>(*role)];
    if (type == TokenType::kNormal) type = TokenType::kControl;
  }
}

void add_token(const TokenizerParts& parts, size_t id, std::string_view where, BpeModel& model) {
  const std::string& token = parts.tokens[id];
  const TokenType type = parts.types[id];
  std::string text = token;
  if (type == TokenType::kControl || type == TokenType::kUserDefined || type == TokenType::kUnknown) {
    model.added.push_back(
        {.content = token, .id = static_cast<int32_t>(id), .special = type != TokenType::kUserDefined});
  } else if (type == TokenType::kUnused) {
    model.unused.resize(parts.tokens.size());
    model.unused[id] = true;
    text.clear();
  } else if (type != TokenType::kNormal && type != TokenType::kByte) {
    throw Error("[tokenizer] {}: token {}: expected a type from 1 to 6, found {}", where, id, static_cast<int>(type));
  } else if (!model.is_sentence_piece()) {
    const std::optional<std::string> bytes = from_alphabet(token);
    if (!bytes) {
      throw Error("[tokenizer] {}: token {}: expected GPT-2's byte alphabet, found {}", where, id, in_quotes(token));
    }
    text = *bytes;
  }
  model.tokens.push_back(std::move(text));
}

// The merges that make the bytes of a character one token. The first ones of characters that start with the same bytes
// are the same. `known` has the results of the merges so far.
void add_character_merges(std::string_view character, std::unordered_set<std::string_view>& known,
                          std::vector<MergeText>& merges) {
  for (size_t length = 1; length < character.size(); ++length) {
    if (!known.insert(character.substr(0, length + 1)).second) continue;
    merges.push_back({to_alphabet(character.substr(0, length)), to_alphabet(character.substr(length, 1))});
  }
}

}  // namespace

std::unique_ptr<Tokenizer> make_tokenizer(TokenizerParts parts, std::string_view where) {
  check(parts, where);
  while (parts.types.back() == TokenType::kUnused && parts.types.size() > 1) {
    parts.types.pop_back();
    parts.tokens.pop_back();
  }
  if (parts.model == TokenizerModel::kByteLevelBpe && !parts.add_bos) {
    if (is_byte_tokenizer(parts)) return std::make_unique<ByteTokenizer>();
    const std::vector<uint32_t> characters = characters_of(parts);
    if (!characters.empty()) return std::make_unique<CharTokenizer>(characters, where);
  }
  make_roles_special(parts);
  BpeModel model;
  model.rules = parts;
  for (size_t id = 0; id < parts.tokens.size(); ++id) add_token(parts, id, where, model);
  const Ids ids(parts, where);
  model.merges.reserve(parts.merges.size());
  for (size_t rank = 0; rank < parts.merges.size(); ++rank) {
    const auto& [left, right] = parts.merges[rank];
    model.merges.push_back(
        {.left = ids.of(rank, left), .right = ids.of(rank, right), .result = ids.of(rank, left + right)});
  }
  model.unk = parts.unk;
  model.bos = parts.bos;
  model.pad = parts.pad;
  if (parts.add_bos) model.begin_of_text = parts.bos;
  model.end_of_text = parts.eos;
  return std::make_unique<BpeTokenizer>(std::move(model), where);
}

TokenizerParts BpeTokenizer::parts() const {
  TokenizerParts parts;
  static_cast<TokenizerRules&>(parts) = rules_;
  const bool sentence_piece = rules_.model == TokenizerModel::kSentencePieceBpe;
  for (int32_t id = 0; id < vocabulary_size(); ++id) {
    parts.tokens.push_back(sentence_piece ? std::string(spelled_[id]) : to_alphabet(bytes_of(id)));
    const bool is_byte = sentence_piece && rules_.byte_fallback && byte_of_token(spelled_[id]) >= 0;
    parts.types.push_back(is_byte ? TokenType::kByte : TokenType::kNormal);
  }
  for (const AddedToken& token : added_) {
    const auto id = static_cast<size_t>(token.id);
    parts.tokens[id] = token.content;
    parts.types[id] = token.special ? TokenType::kControl : TokenType::kUserDefined;
  }
  for (size_t id = 0; id < unused_.size(); ++id) {
    if (!unused_[id]) continue;
    parts.tokens[id] = fmt::format("[PAD{}]", id);
    parts.types[id] = TokenType::kUnused;
  }
  if (unk_ && sentence_piece) parts.types[static_cast<size_t>(*unk_)] = TokenType::kUnknown;
  for (const Merge& merge : merges()) {
    parts.merges.push_back(
        {parts.tokens[static_cast<size_t>(merge.left)], parts.tokens[static_cast<size_t>(merge.right)]});
  }
  parts.bos = bos_;
  parts.eos = end_of_text_;
  parts.unk = unk_;
  parts.pad = pad_;
  parts.add_bos = begin_of_text_.has_value();
  return parts;
}

TokenizerParts ByteTokenizer::parts() const {
  TokenizerParts parts;
  for (size_t byte = 0; byte < 256; ++byte) parts.tokens.push_back(byte_text(byte));
  parts.types.assign(256, TokenType::kNormal);
  return parts;
}

TokenizerParts CharTokenizer::parts() const {
  TokenizerParts parts;
  std::unordered_set<std::string_view> known;
  for (int32_t id = 0; id < vocabulary_size(); ++id) {
    parts.tokens.push_back(to_alphabet(bytes_of(id)));
    add_character_merges(bytes_of(id), known, parts.merges);
  }
  parts.types.assign(parts.tokens.size(), TokenType::kNormal);
  return parts;
}

}  // namespace quern::data
