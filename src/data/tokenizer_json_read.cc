#include <algorithm>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "core/error.h"
#include "core/json.h"
#include "data/bpe_tokenizer.h"
#include "data/byte_alphabet.h"
#include "data/byte_tokenizer.h"
#include "data/char_tokenizer.h"
#include "data/tokenizer_json.h"
#include "data/tokenizer_json_node.h"
#include "data/tokenizer_json_rules.h"
#include "data/utf8.h"

namespace quern::data {
namespace {

using Json = nlohmann::json;

bool is_id(const Json& value) { return value.is_number_unsigned() && value.get<uint64_t>() <= INT32_MAX; }

// The keys of a vocabulary by id, without duplicates.
class Vocabulary {
 public:
  explicit Vocabulary(const JsonNode& vocab) : where_(vocab.where()) {
    for (const auto& item : vocab.object().items()) {
      // at() formats the path, which is only worth it for invalid values.
      id_of_.emplace(item.key(), is_id(item.value()) ? item.value().get<int32_t>() : vocab.at(item.key()).id());
    }
  }

  // Adds a key, or accepts an existing one with the same id.
  void add(const JsonNode& where, const std::string& key, int32_t id) {
    const auto [found, is_new] = id_of_.emplace(key, id);
    if (found->second != id) {
      throw Error("[tokenizer] {}: expected id {} as in the vocabulary, found {}", where.where(), found->second, id);
    }
  }

  // Null if there is no such token.
  const int32_t* find(const std::string& key) const {
    const auto found = id_of_.find(key);
    return found == id_of_.end() ? nullptr : &found->second;
  }

  int32_t id_of(const JsonNode& where, const std::string& key) const {
    const auto found = id_of_.find(key);
    if (found == id_of_.end()) {
      throw Error("[tokenizer] {}: expected tokens of the vocabulary, found {}", where.where(), in_quotes(key));
    }
    return found->second;
  }

  const std::unordered_map<std::string, int32_t>& ids() const noexcept { return id_of_; }

  // Ids must be 0 ... n-1.
  std::vector<std::string> keys() const {
    std::vector<bool> unused;
    return keys(id_of_.size(), unused);
  }

  // Ids must be less than `limit`. `unused` is set for those that do not occur, or left empty if there are none.
  std::vector<std::string> keys(size_t limit, std::vector<bool>& unused) const {
    size_t size = 0;
    for (const auto& [key, id] : id_of_) {
      if (static_cast<size_t>(id) >= limit) {
        throw Error("[tokenizer] {}: {}: expected ids from 0 to {}{}, found {}", where_, in_quotes(key), limit - 1,
                    limit == id_of_.size() ? " without a gap" : "", id);
      }
      size = std::max(size, static_cast<size_t>(id) + 1);
    }
    std::vector<std::string> keys(size);
    std::vector<bool> taken(size);
    for (const auto& [key, id] : id_of_) {
      const auto index = static_cast<size_t>(id);
      if (taken[index]) {
        throw Error("[tokenizer] {}: expected each id once, found id {} for {} and {}", where_, id,
                    in_quotes(keys[index]), in_quotes(key));
      }
      taken[index] = true;
      keys[index] = key;
    }
    if (size > id_of_.size()) {
      taken.flip();
      unused = std::move(taken);
    }
    return keys;
  }

 private:
  std::string where_;
  std::unordered_map<std::string, int32_t> id_of_;
};

std::vector<AddedToken> read_added(const JsonNode& list, Vocabulary& vocabulary) {
  std::vector<AddedToken> added;
  for (size_t i = 0; i < list.size(); ++i) {
    const JsonNode token = list.at(i);
    for (const char* option : {"single_word", "lstrip", "rstrip"}) token[option].must_be_false("it is not supported");
    added.push_back({.content = token["content"].string(),
                     .id = token["id"].id(),
                     .special = token["special"].boolean(false),
                     .normalized = token["normalized"].boolean(false)});
    vocabulary.add(token, added.back().content, added.back().id);
  }
  return added;
}

// Newer files contain ["left", "right"], older ones "left right".
std::pair<std::string, std::string> read_merge(const JsonNode& merge) {
  if (merge.value().is_array()) {
    if (merge.size() != 2) merge.expected("two tokens");
    return {merge.at(0).string(), merge.at(1).string()};
  }
  const std::string& text = merge.string();
  const size_t space = text.find(' ');
  if (space == std::string::npos || text.find(' ', space + 1) != std::string::npos) merge.expected("two tokens");
  return {text.substr(0, space), text.substr(space + 1)};
}

// The same without messages; false if it is not a merge.
bool split_merge(const Json& merge, std::string& left, std::string& right) {
  if (merge.is_array()) {
    if (merge.size() != 2 || !merge[0].is_string() || !merge[1].is_string()) return false;
    left = merge[0].get_ref<const std::string&>();
    right = merge[1].get_ref<const std::string&>();
    return true;
  }
  if (!merge.is_string()) return false;
  const std::string& text = merge.get_ref<const std::string&>();
  const size_t space = text.find(' ');
  if (space == std::string::npos || text.find(' ', space + 1) != std::string::npos) return false;
  left.assign(text, 0, space);
  right.assign(text, space + 1);
  return true;
}

std::vector<Merge> read_merges(const JsonNode& list, const Vocabulary& vocabulary) {
  std::vector<Merge> merges;
  const size_t count = list.size();
  merges.reserve(count);
  std::string left, right, both;
  for (size_t i = 0; i < count; ++i) {
    if (split_merge(list.value()[i], left, right)) {
      both = left;
      both += right;
      const int32_t *const first = vocabulary.find(left), *const second = vocabulary.find(right),
                           *const result = vocabulary.find(both);
      if (first != nullptr && second != nullptr && result != nullptr) {
        merges.push_back({.left = *first, .right = *second, .result = *result});
        continue;
      }
    }
    // Again, for the message, with a path that takes longer to format than a merge to read.
    const JsonNode merge = list.at(i);
    const auto [first, second] = read_merge(merge);
    merges.push_back({.left = vocabulary.id_of(merge, first),
                      .right = vocabulary.id_of(merge, second),
                      .result = vocabulary.id_of(merge, first + second)});
  }
  return merges;
}

// The token that the file is marked with.
std::optional<int32_t> marked_end(const JsonNode& added) {
  for (size_t i = 0; i < added.size(); ++i) {
    const JsonNode token = added.at(i);
    if (token[kEndOfTextMark].boolean(false)) return token["id"].id();
  }
  return std::nullopt;
}

std::optional<int32_t> id_of_added(const std::vector<AddedToken>& added, std::string_view content) {
  const auto found = std::ranges::find(added, content, &AddedToken::content);
  return found == added.end() ? std::nullopt : std::optional(found->id);
}

// The end of a document in files that are not marked.
std::optional<int32_t> usual_end(const BpeModel& model) {
  if (const auto found = id_of_added(model.added, kEndOfText)) return found;
  if (model.is_sentence_piece()) return id_of_added(model.added, "</s>");
  if (model.rules.pretokenizer == PretokenizerKind::kLlama3) return id_of_added(model.added, "<|end_of_text|>");
  return std::nullopt;
}

std::optional<int32_t> requested_end(const BpeModel& model, const ReadOptions& options, std::string_view where) {
  if (!options.end_of_text) return std::nullopt;
  const std::optional<int32_t> found = id_of_added(model.added, *options.end_of_text);
  if (found) return found;
  throw Error("[tokenizer] {}: expected an added token that ends a text, found none that is {}", where,
              in_quotes(*options.end_of_text));
}

// The file with `id` as the only marked token.
std::string with_mark(Json root, int32_t id) {
  for (Json& token : root["added_tokens"]) {
    token.erase(kEndOfTextMark);
    if (token["id"] == id) token[kEndOfTextMark] = true;
  }
  return json_text(root, 2) + "\n";
}

// The bytes of byte-level tokens, which are spelled in GPT-2's alphabet unless they are added.
void read_alphabet(BpeModel& model, std::string_view where) {
  const std::vector<bool> is_added = which_are_added(model);
  for (size_t id = 0; id < model.tokens.size(); ++id) {
    if (is_added[id]) continue;
    std::optional<std::string> bytes = from_alphabet(model.tokens[id]);
    if (!bytes) {
      throw Error("[tokenizer] {}: model: vocab: expected tokens in GPT-2's byte alphabet, found {}", where,
                  in_quotes(model.tokens[id]));
    }
    model.tokens[id] = *std::move(bytes);
  }
}

std::unique_ptr<Tokenizer> read_bpe(const JsonNode& root, const TokenizerRules& rules, std::string_view text,
                                    std::string_view where, const ReadOptions& options) {
  const JsonNode model = root["model"];
  Vocabulary vocabulary(model["vocab"]);
  BpeModel parts{.tokens = {}, .merges = {}, .added = read_added(root["added_tokens"], vocabulary), .rules = rules};
  if (model["merges"].is_null()) model["merges"].expected("an array");  // without merges, text would get different ids
  parts.merges = read_merges(model["merges"], vocabulary);
  // Imported vocabularies may have gaps, but not so many that a small file needs much memory.
  parts.tokens = vocabulary.keys(2 * vocabulary.ids().size(), parts.unused);
  if (!parts.is_sentence_piece()) read_alphabet(parts, where);
  if (const JsonNode unk = model["unk_token"]; !unk.is_null()) parts.unk = vocabulary.id_of(unk, unk.string());
  parts.begin_of_text = read_begin_of_text(root);

  const std::optional<int32_t> marked = marked_end(root["added_tokens"]);
  const std::optional<int32_t> requested = requested_end(parts, options, where);
  std::optional<int32_t> fallback;
  if (options.fallback_end_of_text) fallback = id_of_added(parts.added, *options.fallback_end_of_text);
  const std::optional<int32_t> usual = usual_end(parts);
  parts.end_of_text = requested ? requested : marked ? marked : fallback ? fallback : usual;
  const bool is_told = parts.end_of_text == (marked ? marked : usual);
  return std::make_unique<BpeTokenizer>(
      std::move(parts), where,
      is_told ? std::string(text) : with_mark(root.value(), *(requested ? requested : fallback)));
}

std::unique_ptr<Tokenizer> read_byte(const JsonNode& root) {
  const JsonNode model = root["model"];
  const char* const why = "none, as ByteLevel without use_regex is for bytes only";
  if (model["merges"].size() != 0) model["merges"].expected(why);
  if (root["added_tokens"].size() != 0) root["added_tokens"].expected(why);
  if (!root["normalizer"].is_null()) root["normalizer"].expected("none");
  if (read_begin_of_text(root)) root["post_processor"].expected("none or ByteLevel, which add no tokens");
  const std::vector<std::string> keys = Vocabulary(model["vocab"]).keys();
  if (keys.size() != 256) {
    throw Error("[tokenizer] {}: expected the 256 bytes, found {} tokens", model["vocab"].where(), keys.size());
  }
  for (size_t id = 0; id < keys.size(); ++id) {
    if (keys[id] != to_alphabet(std::string(1, static_cast<char>(static_cast<unsigned char>(id))))) {
      throw Error("[tokenizer] {}: expected id {} for the byte of that value, found {}", model["vocab"].where(), id,
                  in_quotes(keys[id]));
    }
  }
  return std::make_unique<ByteTokenizer>();
}

std::unique_ptr<Tokenizer> read_char(const JsonNode& root, std::string_view where) {
  const JsonNode splitter = root["pre_tokenizer"];
  const bool by_character = splitter.value().is_object() && splitter["type"].value() == "Split" &&
                            splitter["pattern"].value() == Json{{"Regex", kEachCharacter}} &&
                            splitter["behavior"].value() == "Isolated" && !splitter["invert"].boolean(false);
  if (!by_character)
    splitter.expected(fmt::format("a Split by {}, as WordLevel is for characters only", kEachCharacter));
  if (root["added_tokens"].size() != 0) root["added_tokens"].expected("only characters");
  for (const char* part : {"normalizer", "post_processor"}) {
    if (!root[part].is_null()) root[part].expected("none");
  }
  const JsonNode vocab = root["model"]["vocab"];
  std::vector<uint32_t> characters;
  for (const std::string& key : Vocabulary(vocab).keys()) {
    const CodePoint first = key.empty() ? CodePoint{} : read_code_point(key, 0);
    if (key.empty() || first.length != key.size()) {
      throw Error("[tokenizer] {}: expected single characters, found {}", vocab.where(), in_quotes(key));
    }
    characters.push_back(first.value);
  }
  return std::make_unique<CharTokenizer>(characters, where);
}

Json parse(std::string_view text, std::string_view where) {
  if (nested_too_deep(text)) {
    throw Error("[tokenizer] {}: expected JSON that is nested at most {} deep, found more", where, kMaxJsonDepth);
  }
  try {
    return Json::parse(text);
  } catch (const Json::parse_error& error) {
    throw Error("[tokenizer] {}: expected JSON, found a syntax error at byte {}", where, error.byte);
  } catch (const Json::exception&) {
    throw Error("[tokenizer] {}: expected JSON, found a number that is out of range", where);
  }
}

}  // namespace

// Ignores `truncation` and `padding`: they concern batches of texts, not the ids of one.
std::unique_ptr<Tokenizer> read_tokenizer_json(std::string_view text, std::string_view where,
                                               const ReadOptions& options) {
  const Json json = parse(text, where);
  const JsonNode root(json, std::string(where));
  const JsonNode type = root["model"]["type"];
  if (type.value() == "WordLevel") return read_char(root, where);
  // Older GPT-2 files do not contain the type.
  if (!type.is_null() && type.value() != "BPE") type.expected("BPE or WordLevel (characters)");
  const TokenizerRules rules = read_rules(root);
  const bool bytes = rules.model == TokenizerModel::kByteLevelBpe && rules.pretokenizer == PretokenizerKind::kNone;
  return bytes ? read_byte(root) : read_bpe(root, rules, text, where, options);
}

std::optional<std::string> end_of_text_in_config(std::string_view text, std::string_view where) {
  const Json json = parse(text, where);
  const JsonNode token = JsonNode(json, std::string(where))["eos_token"];
  if (token.is_null()) return std::nullopt;
  return token.value().is_object() ? token["content"].string() : token.string();
}

}  // namespace quern::data
