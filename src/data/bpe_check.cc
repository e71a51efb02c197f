#include "data/bpe_check.h"

#include <algorithm>
#include <array>
#include <unordered_map>
#include <unordered_set>

#include "core/error.h"
#include "data/byte_alphabet.h"
#include "data/utf8.h"

namespace quern::data {
namespace {

constexpr size_t kMaxTokens = size_t{1} << 30;  // ids are int32

std::vector<bool> check_added(const BpeModel& model, std::string_view where) {
  std::vector<bool> is_added(model.tokens.size());
  std::unordered_set<std::string_view> contents;
  for (const AddedToken& token : model.added) {
    const std::string name = in_quotes(token.content);
    if (token.content.empty()) throw Error("[tokenizer] {}: added token {} is empty", where, token.id);
    if (valid_utf8_length(token.content) < token.content.size()) {
      throw Error("[tokenizer] {}: added token {}: expected UTF-8, found {}", where, token.id, name);
    }
    if (token.id < 0 || static_cast<size_t>(token.id) >= model.tokens.size()) {
      throw Error("[tokenizer] {}: added token {}: expected an id below {}, found {}", where, name, model.tokens.size(),
                  token.id);
    }
    if (model.tokens[static_cast<size_t>(token.id)] != token.content || is_added[static_cast<size_t>(token.id)]) {
      throw Error("[tokenizer] {}: added token {}: id {} belongs to another token", where, name, token.id);
    }
    if (!contents.insert(token.content).second) {
      throw Error("[tokenizer] {}: added token {} appears twice", where, name);
    }
    is_added[static_cast<size_t>(token.id)] = true;
  }
  return is_added;
}

class Checker {
 public:
  Checker(const BpeModel& model, std::string_view where)
      : model_(model), where_(where), is_added_(check_added(model, where)) {}

  void tokens() {
    if (model_.tokens.size() > kMaxTokens) {
      throw Error("[tokenizer] {}: expected at most {} tokens, found {}", where_, kMaxTokens, model_.tokens.size());
    }
    for (size_t id = 0; id < model_.tokens.size(); ++id) {
      const std::string& bytes = model_.tokens[id];
      if (model_.is_unused(id)) {
        if (!bytes.empty() || is_added_[id]) throw Error("[tokenizer] {}: unused token {} has a text", where_, id);
        continue;
      }
      if (bytes.empty()) throw Error("[tokenizer] {}: token {} is empty", where_, id);
      if (model_.is_sentence_piece() && valid_utf8_length(bytes) < bytes.size()) {
        throw Error("[tokenizer] {}: token {}: expected UTF-8, found {}", where_, id, in_quotes(bytes));
      }
      if (is_added_[id]) continue;
      const auto [earlier, is_new] = id_of_.emplace(bytes, id);
      if (!is_new) {
        throw Error("[tokenizer] {}: tokens {} and {} are both {}", where_, earlier->second, id, in_quotes(bytes));
      }
    }
  }

  // In tokenizer.json, added tokens are written verbatim and others, if byte-level, in GPT-2's alphabet; no two may be
  // spelled the same.
  void added() const {
    for (const AddedToken& token : model_.added) {
      const std::optional<std::string> bytes =
          model_.is_sentence_piece() ? token.content : from_alphabet(token.content);
      const auto other = bytes ? id_of_.find(*bytes) : id_of_.end();
      if (other != id_of_.end()) {
        throw Error("[tokenizer] {}: added token {}: expected a text that differs from token {}", where_,
                    in_quotes(token.content), other->second);
      }
    }
  }

  // Whether a vocabulary may lack this byte: control characters, and bytes that UTF-8 does not use for any character in
  // planes 0 to 3. The vocabulary of SmolLM2 lacks 21 of them, which its text did not contain.
  static bool is_rare(size_t byte) {
    const bool control = byte < 0x20 && byte != '\t' && byte != '\n' && byte != '\r';
    return control || byte == 0x7F || byte == 0xC0 || byte == 0xC1 || byte > 0xF0;
  }

  void bytes() const {
    const TokenizerRules& rules = model_.rules;
    if (model_.is_sentence_piece() ? !rules.byte_fallback : rules.pretokenizer == PretokenizerKind::kDigitsGpt2) return;
    std::array<bool, 256> found{};
    for (const std::string& token : model_.tokens) {
      const int byte = model_.is_sentence_piece() ? byte_of_token(token)
                       : token.size() == 1        ? static_cast<unsigned char>(token[0])
                                                  : -1;
      if (byte >= 0) found[static_cast<size_t>(byte)] = true;
    }
    for (size_t byte = 0; byte < found.size(); ++byte) {
      if (found[byte] || (!model_.is_sentence_piece() && is_rare(byte))) continue;
      throw Error("[tokenizer] {}: expected a token for each byte of ordinary text, found none for 0x{:02x}", where_,
                  byte);
    }
  }

  void roles() const {
    const auto check = [&](std::string_view role, const std::optional<int32_t>& id) {
      if (id &&
          (*id < 0 || static_cast<size_t>(*id) >= model_.tokens.size() || model_.is_unused(static_cast<size_t>(*id)))) {
        throw Error("[tokenizer] {}: {} token: expected the id of a token, found {}", where_, role, *id);
      }
    };
    check("unknown", model_.unk);
    check("begin-of-text", model_.begin_of_text);
    check("end-of-text", model_.end_of_text);
    if (model_.is_sentence_piece() && !model_.rules.byte_fallback && !model_.unk) {
      throw Error("[tokenizer] {}: expected byte_fallback or an unknown token, found neither", where_);
    }
  }

  void merges() const {
    std::unordered_map<uint64_t, size_t> seen;
    for (size_t rank = 0; rank < model_.merges.size(); ++rank) {
      const Merge& merge = model_.merges[rank];
      const std::string joined = part(rank, merge.left) + part(rank, merge.right);
      if (joined != part(rank, merge.result)) {
        throw Error("[tokenizer] {}: merge {}: expected token {} to be {}, found {}", where_, rank, merge.result,
                    in_quotes(joined), in_quotes(part(rank, merge.result)));
      }
      const uint64_t pair = uint64_t{static_cast<uint32_t>(merge.left)} << 32 | static_cast<uint32_t>(merge.right);
      const auto [earlier, is_new] = seen.emplace(pair, rank);
      if (!is_new) throw Error("[tokenizer] {}: merge {} repeats merge {}", where_, rank, earlier->second);
    }
  }

 private:
  const std::string& part(size_t rank, int32_t id) const {
    if (id < 0 || static_cast<size_t>(id) >= model_.tokens.size()) {
      throw Error("[tokenizer] {}: merge {}: expected ids below {}, found {}", where_, rank, model_.tokens.size(), id);
    }
    const std::string& bytes = model_.tokens[static_cast<size_t>(id)];
    if (!model_.is_sentence_piece() && is_added_[static_cast<size_t>(id)] && to_alphabet(bytes) != bytes) {
      throw Error("[tokenizer] {}: merge {}: expected tokens that are not added, found {}", where_, rank,
                  in_quotes(bytes));
    }
    return bytes;
  }

  const BpeModel& model_;
  std::string_view where_;
  std::vector<bool> is_added_;
  std::unordered_map<std::string_view, size_t> id_of_;  // of tokens that are not added
};

void remove_merges_of_special(BpeModel& model) {
  std::vector<bool> is_special(model.tokens.size());
  for (size_t id = 0; id < model.tokens.size(); ++id) is_special[id] = byte_of_token(model.tokens[id]) >= 0;
  for (const AddedToken& token : model.added) is_special[static_cast<size_t>(token.id)] = token.special;
  if (model.unk) is_special[static_cast<size_t>(*model.unk)] = true;
  std::erase_if(model.merges, [&](const Merge& merge) {
    return is_special[static_cast<size_t>(merge.left)] || is_special[static_cast<size_t>(merge.right)] ||
           is_special[static_cast<size_t>(merge.result)];
  });
}

}  // namespace

void check_bpe_model(BpeModel& model, std::string_view where) {
  Checker checker(model, where);
  checker.tokens();
  checker.added();
  checker.bytes();
  checker.roles();
  checker.merges();
  if (model.is_sentence_piece()) remove_merges_of_special(model);
}

}  // namespace quern::data
