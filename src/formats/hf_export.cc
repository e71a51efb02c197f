// A folder that Hugging Face `transformers` opens: AutoModelForCausalLM and AutoTokenizer.
//
//   model.safetensors       weights
//   config.json             the model's dimensions
//   generation_config.json  where generation ends; only if that is known
//   tokenizer.json, tokenizer_config.json
//   chat_template.jinja, special_tokens_map.json    of an imported model that had them
#include "core/files.h"
#include "formats/blocks.h"
#include "formats/export.h"
#include "formats/hf_config.h"
#include "formats/hf_tokenizer.h"
#include "formats/model_files.h"

namespace quern::formats {
namespace {

namespace fs = std::filesystem;
using safetensors::Dtype;

Dtype dtype_of(GgmlType type) {
  return type == GgmlType::kF16 ? Dtype::kF16 : type == GgmlType::kBF16 ? Dtype::kBF16 : Dtype::kF32;
}

std::string_view torch_name(GgmlType type) {
  return type == GgmlType::kF16 ? "float16" : type == GgmlType::kBF16 ? "bfloat16" : "float32";
}

// Only the size of `bytes` is used, the values come from the encoder.
std::vector<safetensors::Tensor> tensors_of(const ExportedModel& model, GgmlType type, TensorEncoder& encoder) {
  std::vector<safetensors::Tensor> tensors;
  for (const TensorSource& weight : model.weights) {
    const std::span<const std::byte> bytes(static_cast<const std::byte*>(nullptr), encoded_bytes(type, weight.size()));
    tensors.push_back({weight.name, dtype_of(type), weight.shape, bytes, encoder.reader(weight, type)});
  }
  return tensors;
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
  const GgmlType type = options.type;
  AtomicDirectory directory(folder);
  ExportResult result{.files = {"model.safetensors"}, .remarks = {}};
  {
    TensorEncoder encoder;
    FileWriter file(directory.temporary() / result.files[0], folder / result.files[0]);
    // transformers requires the first key.
    safetensors::write(file, tensors_of(model, type, encoder), {{"format", "pt"}, {kWriterKey, kWriter}});
    file.close();
  }
  for (const checkpoint::ExtraFile& text : texts_of(model, type)) {
    FileWriter file(directory.temporary() / text.name, folder / text.name);
    file.write(text.text);
    file.close();
    result.files.push_back(text.name);
  }
  directory.commit(options.existing());
  if (model.tokenizer == nullptr) {
    result.remarks.push_back("the run has no tokenizer.json, so the folder has no tokenizer");
  }
  return result;
}

}  // namespace quern::formats
