#include "formats/export_folder.h"

#include <span>

#include "core/files.h"
#include "formats/blocks.h"

namespace quern::formats {
namespace {

using safetensors::Dtype;

Dtype dtype_of(GgmlType type) {
  return type == GgmlType::kF16 ? Dtype::kF16 : type == GgmlType::kBF16 ? Dtype::kBF16 : Dtype::kF32;
}

// Only the size of `bytes` is used, the values come from the encoder.
std::vector<safetensors::Tensor> tensors_of(const std::vector<TensorSource>& weights, GgmlType type,
                                            TensorEncoder& encoder) {
  std::vector<safetensors::Tensor> tensors;
  for (const TensorSource& weight : weights) {
    const std::span<const std::byte> bytes(static_cast<const std::byte*>(nullptr), encoded_bytes(type, weight.size()));
    tensors.push_back({weight.name, dtype_of(type), weight.shape, bytes, encoder.reader(weight, type)});
  }
  return tensors;
}

}  // namespace

std::vector<std::string> write_folder(const ExportFolder& contents, const std::filesystem::path& folder,
                                      const ExportOptions& options) {
  AtomicDirectory directory(folder);
  std::vector<std::string> names = {contents.weights_name};
  {
    TensorEncoder encoder;
    FileWriter file(directory.temporary() / contents.weights_name, folder / contents.weights_name);
    // transformers requires the first key.
    safetensors::write(file, tensors_of(contents.weights, options.type, encoder),
                       {{"format", "pt"}, {kWriterKey, kWriter}});
    file.close();
  }
  for (const checkpoint::ExtraFile& text : contents.texts) {
    FileWriter file(directory.temporary() / text.name, folder / text.name);
    file.write(text.text);
    file.close();
    names.push_back(text.name);
  }
  directory.commit(options.existing());
  return names;
}

std::vector<std::string> folder_remarks(const ExportedModel& model) {
  if (model.tokenizer != nullptr) return {};
  return {"the run has no tokenizer.json, so the folder has no tokenizer"};
}

}  // namespace quern::formats
