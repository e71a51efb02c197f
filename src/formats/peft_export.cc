// A folder that Hugging Face PEFT opens: PeftModel.from_pretrained(model, DIR).
//
//   adapter_model.safetensors  the adapters
//   adapter_config.json        their settings, and the model that they belong to
//   and the files of the tokenizer, as beside a model (hf_export.cc)
#include <utility>

#include "checkpoint/tensor_refs.h"
#include "formats/export.h"
#include "formats/export_folder.h"
#include "formats/hf_tokenizer.h"
#include "formats/peft.h"

namespace quern::formats {

ExportResult export_peft(const ExportedModel& model, const std::filesystem::path& folder,
                         const ExportOptions& options) {
  ExportFolder contents{.weights_name = kPeftWeightsFile, .weights = model.weights, .texts = {}};
  for (TensorSource& weight : contents.weights) weight.name = checkpoint::peft_name(model.model, weight.name);
  contents.texts.push_back(peft_config_file(model.model, model.base));
  // AutoPeftModel opens the tokenizer if there is a tokenizer_config.json, so the two are written together or not at
  // all.
  if (model.tokenizer != nullptr) {
    for (auto& file : hf_tokenizer_files(model.tokenizer, model.model.positions_limit(), model.files)) {
      contents.texts.push_back(std::move(file));
    }
  }
  return {.files = write_folder(contents, folder, options), .remarks = folder_remarks(model)};
}

}  // namespace quern::formats
