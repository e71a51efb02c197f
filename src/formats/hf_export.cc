// A folder that Hugging Face `transformers` opens: AutoModelForCausalLM and AutoTokenizer.
//
//   model.safetensors       weights
//   config.json             the model's dimensions
//   generation_config.json  where generation ends; only if that is known
//   tokenizer.json, tokenizer_config.json
//   chat_template.jinja, special_tokens_map.json    of an imported model that had them
#include "formats/export.h"
#include "formats/export_folder.h"
#include "formats/hf_config.h"
#include "formats/hf_tokenizer.h"
#include "formats/model_files.h"

namespace quern::formats {
namespace {

namespace fs = std::filesystem;

std::string_view torch_name(GgmlType type) {
  return type == GgmlType::kF16 ? "float16" : type == GgmlType::kBF16 ? "bfloat16" : "float32";
}

std::vector<checkpoint::ExtraFile> texts_of(const ExportedModel& model, GgmlType type) {
  const HfConfig config{.model = model.model,
                        .dropout = model.dropout,
                        .tokens = special_tokens(model.files, model.tokenizer, model.model.vocabulary),
                        .dtype = torch_name(type)};
  std::vector<checkpoint::ExtraFile> files = {{.name = "config.json", .text = to_json(config)}};
  if (find_file(model.files, kGenerationConfigFile) == nullptr) {
    std::string text = generation_config(config.tokens);
    if (!text.empty()) files.push_back({.name = kGenerationConfigFile, .text = std::move(text)});
  }
  for (auto& file : hf_tokenizer_files(model.tokenizer, model.model.positions_limit(), model.files)) {
    files.push_back(std::move(file));
  }
  return files;
}

}  // namespace

ExportResult export_hf(const ExportedModel& model, const fs::path& folder, const ExportOptions& options) {
  const ExportFolder contents{
      .weights_name = "model.safetensors", .weights = model.weights, .texts = texts_of(model, options.type)};
  return {.files = write_folder(contents, folder, options), .remarks = folder_remarks(model)};
}

}  // namespace quern::formats
