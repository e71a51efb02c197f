// Adapters as a GGUF file, which llama.cpp adds to a model with --lora.
#include "core/files.h"
#include "formats/gguf_export.h"
#include "formats/gguf_names.h"

namespace quern::formats {

// llama.cpp scales by alpha / rank in every case: with rank-stabilized adapters, the file has the alpha for that.
ExportResult export_gguf_lora(const ExportedModel& exported, const std::filesystem::path& file,
                              const ExportOptions& options) {
  check_for_llama_cpp(exported);
  const nn::AdapterConfig& adapters = exported.model.adapters;
  GgufKeys keys;
  add_general_keys(exported, kAdapterKind, options.type, keys);
  keys.add_text("adapter.type", "lora");
  keys.add_real("adapter.lora.alpha", adapters.scale() * static_cast<double>(adapters.rank));
  std::vector<GgufOutputTensor> tensors;
  for (const TensorSource& matrix : exported.weights) {
    tensors.push_back({adapter_to_gguf(exported.model, matrix), options.type});
  }
  AtomicFile out(file);
  write_gguf(out.writer(), keys, tensors);
  out.commit(options.existing());
  return {.files = {file.filename().string()}, .remarks = {}};
}

}  // namespace quern::formats
