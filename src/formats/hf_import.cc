// Opens a Hugging Face folder as a model.
#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string_view>

#include "core/error.h"
#include "core/files.h"
#include "formats/generation_config.h"
#include "formats/hf_config_reader.h"
#include "formats/hf_weights.h"
#include "formats/model_files.h"
#include "formats/model_source.h"
#include "nn/models/language_model.h"

namespace quern::formats {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kHead = "lm_head.weight";

// How the names in the files differ from those of the parameters: files of the model without its output layer, and most
// files of GPT-2, have or lack a prefix.
struct Prefix {
  std::string_view ours, theirs;

  std::string in_file(std::string_view name) const {
    if (name == kHead || !name.starts_with(ours)) return std::string(name);
    return fmt::format("{}{}", theirs, name.substr(ours.size()));
  }
};

std::string_view table_name(const nn::ModelConfig& model) {
  return model.is_gpt2() ? "wte.weight" : "model.embed_tokens.weight";
}

Prefix find_prefix(const nn::ModelConfig& model, const HfWeights& weights) {
  const std::string_view table = table_name(model);
  const std::array<Prefix, 2> choices = model.is_gpt2() ? std::array<Prefix, 2>{{{"", ""}, {"", "transformer."}}}
                                                        : std::array<Prefix, 2>{{{"", ""}, {"model.", ""}}};
  return weights.contains(choices[1].in_file(table)) ? choices[1] : choices[0];
}

// Buffers that older versions of transformers saved with the weights.
bool is_buffer(std::string_view name) {
  return name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias") || name.ends_with(".rotary_emb.inv_freq");
}

std::string shape_text(const std::vector<size_t>& shape) { return fmt::format("({})", fmt::join(shape, ", ")); }

TensorSource take(const HfWeights& weights, const std::string& name, const nn::Parameter& parameter,
                  const fs::path& folder) {
  if (!weights.contains(name)) {
    throw Error("[import] {}: expected tensor {} of shape {}, found none of that name", folder.string(),
                in_quotes(name), shape_text(parameter.shape));
  }
  if (weights.shape(name) != parameter.shape) {
    throw Error("[import] {}: tensor {}: expected shape {}, as config.json says, found {}", weights.file_of(name),
                in_quotes(name), shape_text(parameter.shape), shape_text(weights.shape(name)));
  }
  return weights.source(name, parameter.name);
}

// With a tied output, some files have its matrix nevertheless: the token table once more. If it is another matrix,
// transformers does not tie the two.
void untie_output(ModelSource& source, const HfWeights& weights, const Prefix& prefix) {
  nn::ModelConfig& model = source.config.model;
  const std::string table = prefix.in_file(table_name(model));
  if (!model.tied_output || !weights.contains(kHead) || !weights.contains(table) || weights.same_bytes(kHead, table)) {
    return;
  }
  model.tied_output = false;
  source.remarks.push_back(
      fmt::format("{} differs from {}, so it was imported although tie_word_embeddings is true", kHead, table));
}

void check_known(const HfWeights& weights, const std::set<std::string>& used, const fs::path& folder) {
  for (const std::string& name : weights.names()) {
    if (used.contains(name) || name == kHead || is_buffer(name)) continue;
    throw Error("[import] {}: expected only tensors of the model that config.json describes, found {}", folder.string(),
                in_quotes(name));
  }
}

// The type of most values.
std::string most_common_type(const HfWeights& weights, const std::set<std::string>& used) {
  std::map<std::string_view, size_t> counts;
  for (const std::string& name : used) {
    size_t count = 1;
    for (const size_t extent : weights.shape(name)) count *= extent;
    counts[weights.dtype(name)] += count;
  }
  const auto largest =
      std::max_element(counts.begin(), counts.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return std::string(largest->first);
}

void open_tokenizer(const fs::path& folder, ModelSource& source) {
  if (!fs::exists(folder / "tokenizer.json")) {
    source.remarks.push_back(
        "the folder has no tokenizer.json, so the run has no tokenizer; transformers writes one with "
        "AutoTokenizer.from_pretrained(DIR).save_pretrained(DIR)");
    return;
  }
  source.tokenizer = data::Tokenizer::load_from(folder.string());
  const auto size = static_cast<size_t>(source.tokenizer->vocabulary_size());
  if (size <= source.config.model.vocabulary) return;
  throw Error("[import] {}: expected at most {} tokens, the vocab_size of config.json, found {}",
              (folder / "tokenizer.json").string(), source.config.model.vocabulary, size);
}

// Old folders have the ids only in config.json.
void add_generation_config(ModelSource& source) {
  if (find_file(source.files, kGenerationConfigFile) != nullptr) return;
  std::string text = generation_config(source.config.tokens);
  if (!text.empty()) source.files.push_back({.name = kGenerationConfigFile, .text = std::move(text)});
}

}  // namespace

ModelSource open_hf_folder(const fs::path& folder) {
  const fs::path path = folder / "config.json";
  if (!fs::exists(path)) {
    throw Error("[import] {}: expected a Hugging Face folder with a config.json, found none", folder.string());
  }
  ModelSource source;
  source.format = "Hugging Face folder";
  source.config = parse_hf_config(read_file(path, kMaxHfConfigBytes), path.string(), &source.remarks);
  const auto weights = std::make_shared<const HfWeights>(folder);
  const Prefix prefix = find_prefix(source.config.model, *weights);
  untie_output(source, *weights, prefix);
  std::set<std::string> used;
  const nn::Declaration declaration = nn::declare(source.config.model);
  for (const nn::Parameter& parameter : declaration.parameters.all()) {
    const std::string name = prefix.in_file(parameter.name);
    source.tensors.push_back(take(*weights, name, parameter, folder));
    used.insert(name);
  }
  check_known(*weights, used, folder);
  source.type = most_common_type(*weights, used);
  source.files = read_model_files(folder);
  read_end_tokens(folder / kGenerationConfigFile, source.config.model.vocabulary,
                  [](const std::string&) {});  // fails now rather than when the run generates
  add_generation_config(source);
  open_tokenizer(folder, source);
  source.config.tokens = special_tokens(source.files, source.tokenizer.get(), source.config.model.vocabulary);
  source.check_intact = [weights] { weights->check_intact(); };
  source.owner = weights;
  return source;
}

}  // namespace quern::formats
