#include "data/bpe_check.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "core/error.h"
#include "data/byte_alphabet.h"
#include "data/utf8.h"

namespace quern::data {
namespace {

constexpr size_t kMaxTokens = size_t{1} << 30;  // ids are int32

std::vector<bool> which_are_added(const BpeModel& model, std::string_view where) {
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
      : model_(model), where_(where), is_added_(which_are_added(model, where)) {}

  void tokens() {
    if (model_.tokens.size() > kMaxTokens) {
      throw Error("[tokenizer] {}: expected at most {} tokens, found {}", where_, kMaxTokens, model_.tokens.size());
    }
    for (size_t id = 0; id < model_.tokens.size(); ++id) {
      const std::string& bytes = model_.tokens[id];
      if (bytes.empty()) throw Error("[tokenizer] {}: token {} is empty", where_, id);
      if (is_added_[id]) continue;
      const auto [earlier, is_new] = id_of_.emplace(bytes, id);
      if (!is_new) {
        throw Error("[tokenizer] {}: tokens {} and {} are both {}", where_, earlier->second, id, in_quotes(bytes));
      }
    }
  }

  // In tokenizer.json, added tokens are written verbatim and others in GPT-2's alphabet; no two may be spelled the
  // same.
  void added() const {
    for (const AddedToken& token : model_.added) {
      const std::optional<std::string> bytes = from_alphabet(token.content);
      const auto other = bytes ? id_of_.find(*bytes) : id_of_.end();
      if (other != id_of_.end()) {
        throw Error("[tokenizer] {}: added token {}: expected a text that differs from token {}", where_,
                    in_quotes(token.content), other->second);
      }
    }
  }

  void bytes() const {
    const std::array<int32_t, 256> ids = ids_of_bytes(model_);
    for (size_t byte = 0; byte < ids.size(); ++byte) {
      if (ids[byte] < 0) {
        throw Error("[tokenizer] {}: expected a token for each of the 256 bytes, found none for 0x{:02x}", where_,
                    byte);
      }
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
    if (is_added_[static_cast<size_t>(id)] && to_alphabet(bytes) != bytes) {
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

}  // namespace

void check_bpe_model(const BpeModel& model, std::string_view where) {
  Checker checker(model, where);
  checker.tokens();
  checker.added();
  checker.bytes();
  checker.merges();
}

// A byte may also exist as an added token with another id; plain text then uses the plain one.
std::array<int32_t, 256> ids_of_bytes(const BpeModel& model) {
  std::vector<bool> is_added(model.tokens.size());
  for (const AddedToken& token : model.added) is_added[static_cast<size_t>(token.id)] = true;
  std::array<int32_t, 256> ids;
  ids.fill(-1);
  for (const bool added : {true, false}) {
    for (size_t id = 0; id < model.tokens.size(); ++id) {
      if (model.tokens[id].size() != 1 || is_added[id] != added) continue;
      ids[static_cast<unsigned char>(model.tokens[id][0])] = static_cast<int32_t>(id);
    }
  }
  return ids;
}

}  // namespace quern::data
