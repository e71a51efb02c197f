#include <nlohmann/json.hpp>
#include <unordered_map>

#include "core/error.h"
#include "core/json.h"
#include "data/byte_alphabet.h"
#include "data/byte_tokenizer.h"
#include "data/char_tokenizer.h"
#include "data/tokenizer_json.h"
#include "data/utf8.h"

namespace quern::data {
namespace {

using Json = nlohmann::json;

const Json kNull;

std::string described(const Json& value) {
  if (value.is_string()) return in_quotes(value.get_ref<const std::string&>());
  if (value.is_object() || value.is_array()) return std::string("an ") + value.type_name();
  return value.is_null() ? "nothing" : json_text(value);
}

bool is_id(const Json& value) { return value.is_number_unsigned() && value.get<uint64_t>() <= INT32_MAX; }

// A value of the document, and its path for messages.
class Node {
 public:
  Node(const Json& value, std::string where) : value_(value), where_(std::move(where)) {}

  const Json& value() const noexcept { return value_; }
  const std::string& where() const noexcept { return where_; }
  bool is_null() const noexcept { return value_.is_null(); }

  [[noreturn]] void expected(std::string_view what) const {
    throw Error("[tokenizer] {}: expected {}, found {}", where_, what, described(value_));
  }

  // A missing field reads as null.
  Node operator[](const char* name) const {
    const auto found = object().find(name);
    return {found == value_.end() ? kNull : *found, fmt::format("{}: {}", where_, name)};
  }
  Node at(size_t i) const { return {value_[i], fmt::format("{}[{}]", where_, i)}; }
  Node at(const std::string& key) const { return {value_[key], fmt::format("{}[{}]", where_, in_quotes(key))}; }

  const Json& object() const {
    if (!value_.is_object()) expected("an object");
    return value_;
  }
  // Number of elements of an array; null counts as empty.
  size_t size() const {
    if (!value_.is_array() && !value_.is_null()) expected("an array");
    return value_.size();
  }
  const std::string& string() const {
    if (!value_.is_string()) expected("a string");
    return value_.get_ref<const std::string&>();
  }
  int32_t id() const {
    if (!value_.is_number_unsigned() || value_.get<uint64_t>() > INT32_MAX)
      expected("an id, a whole number below 2^31");
    return static_cast<int32_t>(value_.get<uint64_t>());
  }
  bool boolean(bool otherwise) const {
    if (is_null()) return otherwise;
    if (!value_.is_boolean()) expected("true or false");
    return value_.get<bool>();
  }
  void must_be_false(std::string_view why) const {
    if (boolean(false)) throw Error("[tokenizer] {}: expected false, found true; {}", where_, why);
  }

 private:
  const Json& value_;
  std::string where_;
};

// The keys of a vocabulary by id. Ids must be 0 ... n-1, without duplicates.
class Vocabulary {
 public:
  explicit Vocabulary(const Node& vocab) : where_(vocab.where()) {
    for (const auto& item : vocab.object().items()) {
      // at() formats the path, which is only worth it for invalid values.
      id_of_.emplace(item.key(), is_id(item.value()) ? item.value().get<int32_t>() : vocab.at(item.key()).id());
    }
  }

  // Adds a key, or accepts an existing one with the same id.
  void add(const Node& where, const std::string& key, int32_t id) {
    const auto [found, is_new] = id_of_.emplace(key, id);
    if (found->second != id) {
      throw Error("[tokenizer] {}: expected id {} as in the vocabulary, found {}", where.where(), found->second, id);
    }
  }

  int32_t id_of(const Node& where, const std::string& key) const {
    const auto found = id_of_.find(key);
    if (found == id_of_.end()) {
      throw Error("[tokenizer] {}: expected tokens of the vocabulary, found {}", where.where(), in_quotes(key));
    }
    return found->second;
  }

  std::vector<std::string> keys() const {
    std::vector<std::string> keys(id_of_.size());
    std::vector<bool> taken(id_of_.size());
    for (const auto& [key, id] : id_of_) {
      const auto index = static_cast<size_t>(id);
      if (index >= keys.size()) {
        throw Error("[tokenizer] {}: {}: expected ids from 0 to {} without a gap, found {}", where_, in_quotes(key),
                    keys.size() - 1, id);
      }
      if (taken[index]) {
        throw Error("[tokenizer] {}: expected each id once, found id {} for {} and {}", where_, id,
                    in_quotes(keys[index]), in_quotes(key));
      }
      taken[index] = true;
      keys[index] = key;
    }
    return keys;
  }

 private:
  std::string where_;
  std::unordered_map<std::string, int32_t> id_of_;
};

std::vector<AddedToken> read_added(const Node& list, Vocabulary& vocabulary) {
  std::vector<AddedToken> added;
  for (size_t i = 0; i < list.size(); ++i) {
    const Node token = list.at(i);
    for (const char* option : {"single_word", "lstrip", "rstrip"}) token[option].must_be_false("it is not supported");
    added.push_back(
        {.content = token["content"].string(), .id = token["id"].id(), .special = token["special"].boolean(false)});
    vocabulary.add(token, added.back().content, added.back().id);
  }
  return added;
}

// Newer files contain ["left", "right"], older ones "left right".
std::pair<std::string, std::string> read_merge(const Node& merge) {
  if (merge.value().is_array()) {
    if (merge.size() != 2) merge.expected("two tokens");
    return {merge.at(0).string(), merge.at(1).string()};
  }
  const std::string& text = merge.string();
  const size_t space = text.find(' ');
  if (space == std::string::npos || text.find(' ', space + 1) != std::string::npos) merge.expected("two tokens");
  return {text.substr(0, space), text.substr(space + 1)};
}

std::vector<Merge> read_merges(const Node& list, const Vocabulary& vocabulary) {
  std::vector<Merge> merges;
  for (size_t i = 0; i < list.size(); ++i) {
    const Node merge = list.at(i);
    const auto [left, right] = read_merge(merge);
    merges.push_back({.left = vocabulary.id_of(merge, left),
                      .right = vocabulary.id_of(merge, right),
                      .result = vocabulary.id_of(merge, left + right)});
  }
  return merges;
}

// Rejects options that would change the ids.
void check_bpe_options(const Node& model) {
  for (const char* option : {"byte_fallback", "ignore_merges"}) model[option].must_be_false("it is not supported");
  if (!model["dropout"].is_null()) model["dropout"].expected("none");
  for (const char* option : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    if (!model[option].is_null() && !model[option].string().empty()) model[option].expected("none");
  }
}

std::unique_ptr<Tokenizer> read_bpe(const Node& root, std::string_view where) {
  const Node model = root["model"];
  Vocabulary vocabulary(model["vocab"]);
  BpeModel parts{.tokens = {}, .merges = {}, .added = read_added(root["added_tokens"], vocabulary)};
  if (model["merges"].is_null()) model["merges"].expected("an array");  // without merges, text would get different ids
  parts.merges = read_merges(model["merges"], vocabulary);
  parts.tokens = vocabulary.keys();
  std::vector<bool> is_added(parts.tokens.size());
  for (const AddedToken& token : parts.added) is_added[static_cast<size_t>(token.id)] = true;
  for (size_t id = 0; id < parts.tokens.size(); ++id) {
    if (is_added[id]) continue;
    std::optional<std::string> bytes = from_alphabet(parts.tokens[id]);
    if (!bytes) {
      throw Error("[tokenizer] {}: model: vocab: expected tokens in GPT-2's byte alphabet, found {}", where,
                  in_quotes(parts.tokens[id]));
    }
    parts.tokens[id] = *std::move(bytes);
  }
  return std::make_unique<BpeTokenizer>(std::move(parts), where);
}

std::unique_ptr<Tokenizer> read_byte(const Node& root) {
  const Node model = root["model"];
  const char* const why = "none, as ByteLevel without use_regex is for bytes only";
  if (model["merges"].size() != 0) model["merges"].expected(why);
  if (root["added_tokens"].size() != 0) root["added_tokens"].expected(why);
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

std::unique_ptr<Tokenizer> read_byte_level(const Node& root, std::string_view where) {
  const Node splitter = root["pre_tokenizer"];
  if (splitter.is_null() || splitter["type"].string() != "ByteLevel") {
    throw Error("[tokenizer] {}: expected ByteLevel (the BPE of GPT-2), found {}", splitter.where(),
                splitter.is_null() ? "nothing" : in_quotes(splitter["type"].string()));
  }
  splitter["add_prefix_space"].must_be_false("decoding would not restore the text");
  const Node decoder = root["decoder"];
  if (!decoder.is_null() && decoder["type"].string() != "ByteLevel") decoder["type"].expected("ByteLevel");
  const Node processor = root["post_processor"];
  if (!processor.is_null() && processor["type"].string() != "ByteLevel") {
    processor["type"].expected("none or ByteLevel, which add no tokens");
  }
  check_bpe_options(root["model"]);
  return splitter["use_regex"].boolean(true) ? read_bpe(root, where) : read_byte(root);
}

std::unique_ptr<Tokenizer> read_char(const Node& root, std::string_view where) {
  const Node splitter = root["pre_tokenizer"];
  const bool by_character = splitter.value().is_object() && splitter["type"].value() == "Split" &&
                            splitter["pattern"].value() == Json{{"Regex", kEachCharacter}} &&
                            splitter["behavior"].value() == "Isolated" && !splitter["invert"].boolean(false);
  if (!by_character)
    splitter.expected(fmt::format("a Split by {}, as WordLevel is for characters only", kEachCharacter));
  if (root["added_tokens"].size() != 0) root["added_tokens"].expected("only characters");
  if (!root["post_processor"].is_null()) root["post_processor"].expected("none");
  const Node vocab = root["model"]["vocab"];
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
std::unique_ptr<Tokenizer> read_tokenizer_json(std::string_view text, std::string_view where) {
  const Json json = parse(text, where);
  const Node root(json, std::string(where));
  if (!root["normalizer"].is_null()) root["normalizer"].expected("none: decoding must restore the text");
  const Node type = root["model"]["type"];
  // Older GPT-2 files do not contain the type.
  if (type.is_null() || type.value() == "BPE") return read_byte_level(root, where);
  if (type.value() == "WordLevel") return read_char(root, where);
  type.expected("BPE (byte-level) or WordLevel (characters)");
}

}  // namespace quern::data
