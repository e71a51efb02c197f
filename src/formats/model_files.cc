#include "formats/model_files.h"

#include <algorithm>

#include "core/error.h"
#include "core/files.h"
#include "core/json.h"
#include "core/text.h"

namespace quern::formats {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

std::string read_checked(const fs::path& path) {
  std::string text = read_file(path, kMaxModelFileBytes);
  if (!is_utf8(text)) throw Error("[model] {}: expected UTF-8, found other bytes", path.string());
  if (path.extension() == ".json" && !parse_json(text).is_object()) {
    throw Error("[model] {}: expected a JSON object, found something else", path.string());
  }
  return text;
}

std::optional<int32_t> id_in(const Json& value, size_t vocabulary) {
  if (!value.is_number_unsigned() || value.get<uint64_t>() >= vocabulary) return std::nullopt;
  return static_cast<int32_t>(value.get<uint64_t>());
}

}  // namespace

bool is_model_file(std::string_view name) {
  return std::any_of(kModelFiles.begin(), kModelFiles.end(), [&](const char* known) { return name == known; });
}

std::vector<checkpoint::ExtraFile> read_model_files(const fs::path& folder) {
  std::vector<checkpoint::ExtraFile> files;
  for (const char* name : kModelFiles) {
    std::error_code ignored;
    if (fs::exists(folder / name, ignored)) files.push_back({.name = name, .text = read_checked(folder / name)});
  }
  return files;
}

const std::string* find_file(std::span<const checkpoint::ExtraFile> files, std::string_view name) {
  const auto found = std::find_if(files.begin(), files.end(), [&](const auto& file) { return file.name == name; });
  return found == files.end() ? nullptr : &found->text;
}

// Ids outside of the vocabulary stand for none: some files have -1 or an id of another model.
SpecialTokens read_special_tokens(const Json& json, size_t vocabulary) {
  SpecialTokens tokens;
  if (!json.is_object()) return tokens;
  const auto value = [&](const char* key) { return json.contains(key) ? json[key] : Json(); };
  tokens.bos = id_in(value("bos_token_id"), vocabulary);
  tokens.pad = id_in(value("pad_token_id"), vocabulary);
  const Json eos = value("eos_token_id");
  for (const Json& one : eos.is_array() ? eos : Json::array({eos})) {
    if (const auto id = id_in(one, vocabulary)) tokens.eos.push_back(*id);
  }
  return tokens;
}

SpecialTokens special_tokens(std::span<const checkpoint::ExtraFile> files, const data::Tokenizer* tokenizer,
                             size_t vocabulary) {
  if (const std::string* text = find_file(files, kGenerationConfigFile)) {
    return read_special_tokens(parse_json(*text), vocabulary);
  }
  SpecialTokens tokens;
  if (tokenizer == nullptr || !tokenizer->end_of_text()) return tokens;
  tokens.pad = tokenizer->end_of_text();
  tokens.bos = tokenizer->begin_of_text() ? tokenizer->begin_of_text() : tokens.pad;
  tokens.eos = {*tokenizer->end_of_text()};
  return tokens;
}

std::string generation_config(const SpecialTokens& tokens) {
  nlohmann::ordered_json json;
  if (tokens.bos) json["bos_token_id"] = *tokens.bos;
  if (tokens.eos.size() == 1) json["eos_token_id"] = tokens.eos[0];
  if (tokens.eos.size() > 1) json["eos_token_id"] = tokens.eos;
  if (tokens.pad) json["pad_token_id"] = *tokens.pad;
  return json.empty() ? std::string() : json_text(json, 2) + "\n";
}

}  // namespace quern::formats
