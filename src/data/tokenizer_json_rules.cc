#include "data/tokenizer_json_rules.h"

#include <array>
#include <utility>

#include "core/error.h"
#include "data/bpe_model.h"
#include "data/utf8.h"

namespace quern::data {
namespace {

using Json = JsonNode::Json;

constexpr std::array<std::pair<std::string_view, PretokenizerKind>, 3> kPatterns = {{
    {kGpt2Pattern, PretokenizerKind::kGpt2},
    {kLlama3Pattern, PretokenizerKind::kLlama3},
    {kQwen2Pattern, PretokenizerKind::kQwen2},
}};

bool is_type(const JsonNode& node, const char* type) { return !node.is_null() && node["type"].string() == type; }

[[noreturn]] void unknown(const JsonNode& node, std::string_view known) {
  throw Error("[tokenizer] {}: expected {}, found {}", node.where(), known, node.type_name());
}

PretokenizerKind kind_of_pattern(const JsonNode& split) {
  const JsonNode regex = split["pattern"]["Regex"];
  for (const auto& [pattern, kind] : kPatterns) {
    if (regex.value() != pattern) continue;
    if (split["behavior"].value() != "Isolated") split["behavior"].expected("Isolated");
    split["invert"].must_be_false("it is not supported");
    return kind;
  }
  regex.expected("the regular expression of GPT-2, Llama 3 or Qwen");
}

// ByteLevel, whether it splits by GPT-2's regular expression.
bool byte_level_splits(const JsonNode& node) {
  node["add_prefix_space"].must_be_false("decoding would not restore the text");
  return node["use_regex"].boolean(true);
}

PretokenizerKind read_sequence(const JsonNode& splitter) {
  const JsonNode list = splitter["pretokenizers"];
  if (list.size() != 2) list.expected("two pre-tokenizers: Split or Digits, and ByteLevel");
  const JsonNode first = list.at(0);
  const JsonNode second = list.at(1);
  if (!is_type(second, "ByteLevel")) unknown(second, "ByteLevel");
  const bool splits = byte_level_splits(second);
  if (is_type(first, "Digits")) {
    if (!first["individual_digits"].boolean(false)) first["individual_digits"].expected("true");
    if (!splits) second["use_regex"].expected("true after Digits");
    return PretokenizerKind::kDigitsGpt2;
  }
  if (!is_type(first, "Split")) unknown(first, "Split or Digits");
  if (splits) second["use_regex"].expected("false after Split");
  return kind_of_pattern(first);
}

// Metaspace: spaces become U+2581, perhaps with one in front.
SpacePrefix read_metaspace(const JsonNode& node) {
  if (node["replacement"].string() != kSpaceSymbol) node["replacement"].expected("U+2581");
  if (node["split"].boolean(true)) {
    throw Error("[tokenizer] {}: expected false, found true; it is not supported", node["split"].where());
  }
  const JsonNode scheme = node["prepend_scheme"];
  if (scheme.is_null()) {  // older files
    return node["add_prefix_space"].boolean(true) ? SpacePrefix::kMetaspaceAlways : SpacePrefix::kNever;
  }
  if (scheme.string() == "always") return SpacePrefix::kMetaspaceAlways;
  if (scheme.string() == "first") return SpacePrefix::kMetaspaceFirst;
  if (scheme.string() == "never") return SpacePrefix::kNever;
  scheme.expected("always, first or never");
}

bool replaces_spaces(const JsonNode& node) {
  return is_type(node, "Replace") && node["pattern"].value() == Json{{"String", " "}} &&
         node["content"].value() == kSpaceSymbol;
}

// Prepend and Replace of older SentencePiece files.
SpacePrefix read_space_normalizer(const JsonNode& normalizer) {
  if (replaces_spaces(normalizer)) return SpacePrefix::kNever;
  const JsonNode list = normalizer["normalizers"];
  const size_t count = list.size();
  const bool prepends = count == 2 && is_type(list.at(0), "Prepend");
  if (!(count == 1 || prepends) || !replaces_spaces(list.at(count - 1))) {
    list.expected("Prepend and Replace of SentencePiece");
  }
  if (!prepends) return SpacePrefix::kNever;
  const JsonNode prepend = list.at(0)["prepend"];
  if (prepend.string() != kSpaceSymbol) prepend.expected("U+2581");
  return SpacePrefix::kAlways;
}

// Replace, ByteFallback, Fuse and perhaps Strip. Returns whether it strips a space.
bool read_sentence_piece_decoder(const JsonNode& decoder) {
  if (!is_type(decoder, "Sequence")) unknown(decoder, "a Sequence of Replace, ByteFallback, Fuse and Strip");
  const JsonNode list = decoder["decoders"];
  const size_t count = list.size();
  if (count != 3 && count != 4) list.expected("Replace, ByteFallback, Fuse and Strip");
  const JsonNode replace = list.at(0);
  if (!is_type(replace, "Replace") || replace["pattern"].value() != Json{{"String", kSpaceSymbol}} ||
      replace["content"].value() != " ") {
    replace.expected("Replace of U+2581 by a space");
  }
  if (!is_type(list.at(1), "ByteFallback")) unknown(list.at(1), "ByteFallback");
  if (!is_type(list.at(2), "Fuse")) unknown(list.at(2), "Fuse");
  if (count == 3) return false;
  const JsonNode strip = list.at(3);
  if (!is_type(strip, "Strip")) unknown(strip, "Strip");
  if (strip["content"].value() != " " || strip["start"].value() != 1 || strip["stop"].value() != 0) {
    strip.expected("Strip of one space at the start");
  }
  return true;
}

TokenizerRules read_sentence_piece(const JsonNode& root) {
  const JsonNode normalizer = root["normalizer"];
  const JsonNode splitter = root["pre_tokenizer"];
  TokenizerRules rules{.model = TokenizerModel::kSentencePieceBpe, .pretokenizer = PretokenizerKind::kNone};
  if (splitter.is_null()) {
    if (normalizer.is_null()) {
      throw Error("[tokenizer] {}: expected ByteLevel, Metaspace, Split or Digits, found nothing", splitter.where());
    }
    if (!is_type(normalizer, "Sequence") && !is_type(normalizer, "Replace")) {
      unknown(normalizer, "Prepend and Replace of SentencePiece");
    }
    rules.space_prefix = read_space_normalizer(normalizer);
  } else {
    if (!normalizer.is_null()) unknown(normalizer, "none before Metaspace");
    rules.space_prefix = read_metaspace(splitter);
  }
  rules.strip_space = read_sentence_piece_decoder(root["decoder"]);
  return rules;
}

TokenizerRules read_byte_level(const JsonNode& root) {
  const JsonNode splitter = root["pre_tokenizer"];
  TokenizerRules rules;
  if (is_type(splitter, "ByteLevel")) {
    rules.pretokenizer = byte_level_splits(splitter) ? PretokenizerKind::kGpt2 : PretokenizerKind::kNone;
  } else if (is_type(splitter, "Sequence")) {
    rules.pretokenizer = read_sequence(splitter);
  } else {
    unknown(splitter, "ByteLevel, Metaspace, or a Sequence of Split or Digits and ByteLevel");
  }
  const JsonNode normalizer = root["normalizer"];
  if (is_type(normalizer, "NFC")) {
    rules.normalizer = NormalizerKind::kNfc;
  } else if (!normalizer.is_null()) {
    unknown(normalizer, "none or NFC");
  }
  const JsonNode decoder = root["decoder"];
  if (!decoder.is_null() && !is_type(decoder, "ByteLevel")) unknown(decoder, "ByteLevel");
  return rules;
}

// Rejects options that would change the ids.
void read_model_options(const JsonNode& model, TokenizerRules& rules) {
  if (!model["dropout"].is_null()) model["dropout"].expected("none");
  for (const char* option : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    if (!model[option].is_null() && !model[option].string().empty()) model[option].expected("none");
  }
  rules.ignore_merges = model["ignore_merges"].boolean(false);
  rules.fuse_unknown = model["fuse_unk"].boolean(false);
  rules.byte_fallback = model["byte_fallback"].boolean(false);
  if (rules.byte_fallback && rules.model == TokenizerModel::kByteLevelBpe) {
    model["byte_fallback"].must_be_false("it is only supported without ByteLevel");
  }
}

std::optional<int32_t> read_template(const JsonNode& processor) {
  const JsonNode single = processor["single"];
  std::optional<int32_t> begin;
  bool text = false;
  for (size_t i = 0; i < single.size(); ++i) {
    const JsonNode item = single.at(i);
    if (const JsonNode sequence = item["Sequence"]; !sequence.is_null()) {
      if (text || sequence["id"].value() != "A") item.expected("the text once");
      text = true;
      continue;
    }
    const JsonNode special = item["SpecialToken"];
    const std::string& name = special["id"].string();
    if (text || begin) {
      throw Error("[tokenizer] {}: expected at most one token, before the text, found another one: {}", item.where(),
                  in_quotes(name));
    }
    const JsonNode tokens = processor["special_tokens"];
    if (!tokens.object().contains(name)) tokens.expected("an entry for each token of the template");
    const JsonNode ids = tokens.at(name)["ids"];
    if (ids.size() != 1) ids.expected("one id");
    begin = ids.at(0).id();
  }
  if (!text) single.expected("the text in the template");
  return begin;
}

}  // namespace

TokenizerRules read_rules(const JsonNode& root) {
  const JsonNode splitter = root["pre_tokenizer"];
  const bool sentence_piece = splitter.is_null() || is_type(splitter, "Metaspace");
  TokenizerRules rules = sentence_piece ? read_sentence_piece(root) : read_byte_level(root);
  read_model_options(root["model"], rules);
  return rules;
}

std::optional<int32_t> read_begin_of_text(const JsonNode& root) {
  const JsonNode processor = root["post_processor"];
  if (processor.is_null() || is_type(processor, "ByteLevel")) return std::nullopt;
  if (is_type(processor, "TemplateProcessing")) return read_template(processor);
  if (!is_type(processor, "Sequence")) unknown(processor, "ByteLevel, TemplateProcessing or a Sequence of these");
  const JsonNode list = processor["processors"];
  std::optional<int32_t> begin;
  for (size_t i = 0; i < list.size(); ++i) {
    const JsonNode item = list.at(i);
    if (is_type(item, "ByteLevel")) continue;
    if (!is_type(item, "TemplateProcessing") || begin) unknown(item, "ByteLevel and one TemplateProcessing");
    begin = read_template(item);
  }
  return begin;
}

}  // namespace quern::data
