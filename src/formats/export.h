// Writes a model for other programs: a folder for Hugging Face `transformers`, or a GGUF file for llama.cpp. The
// adapters of a model can be written alone, for Hugging Face PEFT and for llama.cpp.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "core/files.h"
#include "data/tokenizer.h"
#include "formats/tensor_source.h"
#include "nn/models/model_config.h"

namespace quern::formats {

enum class ExportFormat : uint8_t { kHf, kGguf, kPeft, kGgufLora };

constexpr bool writes_folder(ExportFormat format) {
  return format == ExportFormat::kHf || format == ExportFormat::kPeft;
}
constexpr bool writes_adapters(ExportFormat format) {  // and not the model
  return format == ExportFormat::kPeft || format == ExportFormat::kGgufLora;
}

// "hf", "gguf", "peft" and "gguf-lora"; "f32", "f16", "bf16" and "q8_0". Error, listing the names, for others.
ExportFormat export_format(std::string_view name);
std::string_view format_name(ExportFormat format);
GgmlType export_type(std::string_view name);

struct ExportOptions {
  ExportFormat to = ExportFormat::kHf;
  GgmlType type = GgmlType::kF32;                                    // F32, F16, BF16, or Q8_0 for a model as GGUF
  bool merge = false;                                                // write an adapted model as one without adapters
  bool force = false;                                                // replace an earlier export, and nothing else
  std::function<void(uint64_t done, uint64_t total)> progress = {};  // parameters read so far, and in total

  Existing existing() const { return force ? Existing::kReplace : Existing::kKeep; }
};

// What is exported. Everything must stay valid during the export.
struct ExportedModel {
  std::string name;  // of the run
  nn::ModelConfig model;
  double dropout = 0.0;
  // Every parameter of the model, in its order; for a format that has adapters alone, their matrices.
  std::vector<TensorSource> weights;
  const data::Tokenizer* tokenizer = nullptr;  // null if there is none
  std::vector<checkpoint::ExtraFile> files;    // formats/model_files.h
  std::string base = {};                       // of adapters: path or name of the model that they belong to
};

struct ExportResult {
  std::vector<std::string> files;    // names of the files in the folder; the file's own name for GGUF
  std::vector<std::string> remarks;  // what the user should know
};

// Writes the folder or file, complete or not at all. Error if the format cannot represent the model or one of its
// weights, or if something of that name exists; an empty folder may, and with `force` an earlier export of the same
// format.
ExportResult export_model(const ExportedModel& model, const std::filesystem::path& out, const ExportOptions& options);

// What marks an export as one of Quern's, which another export may replace: in the metadata of safetensors, and as a
// key of a GGUF file.
inline constexpr const char* kWriterKey = "quern.writer";
inline constexpr const char* kWriter = "quern " QUERN_VERSION;

// The formats. `out` has no trailing slash, and was checked.
ExportResult export_hf(const ExportedModel& model, const std::filesystem::path& folder, const ExportOptions& options);
ExportResult export_gguf(const ExportedModel& model, const std::filesystem::path& file, const ExportOptions& options);
ExportResult export_peft(const ExportedModel& model, const std::filesystem::path& folder, const ExportOptions& options);
ExportResult export_gguf_lora(const ExportedModel& model, const std::filesystem::path& file,
                              const ExportOptions& options);

}  // namespace quern::formats
