#include "formats/export.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <system_error>

#include "core/error.h"
#include "core/files.h"
#include "core/text.h"
#include "formats/export_target.h"
#include "formats/hf_config.h"

namespace quern::formats {
namespace {

namespace fs = std::filesystem;

struct NamedType {
  std::string_view name;
  GgmlType type;
};
constexpr std::array<NamedType, 4> kTypes = {
    {{"f32", GgmlType::kF32}, {"f16", GgmlType::kF16}, {"bf16", GgmlType::kBF16}, {"q8_0", GgmlType::kQ8_0}}};

struct NamedFormat {
  std::string_view name;
  ExportFormat format;
  ExportResult (*write)(const ExportedModel&, const fs::path&, const ExportOptions&);
};
constexpr std::array<NamedFormat, 4> kFormats = {{{"hf", ExportFormat::kHf, export_hf},
                                                  {"gguf", ExportFormat::kGguf, export_gguf},
                                                  {"peft", ExportFormat::kPeft, export_peft},
                                                  {"gguf-lora", ExportFormat::kGgufLora, export_gguf_lora}}};

// B of an adapter has rows of as many values as its rank, often fewer than a block of Q8_0 has.
void check_type(const ExportOptions& options) {
  if (options.type != GgmlType::kQ8_0 || options.to == ExportFormat::kGguf) return;
  if (options.to == ExportFormat::kHf) {
    throw Error("[export] dtype: expected f32, f16 or bf16 for a Hugging Face folder, found q8_0; choose --to gguf");
  }
  throw Error(
      "[export] dtype: expected f32, f16 or bf16 for adapters, whose rows are too short for blocks of 32 values, found "
      "q8_0; for a model of that type, choose --merge --to gguf");
}

// Whether llama.cpp opens what is written, rather than transformers or PEFT.
bool is_for_llama_cpp(ExportFormat format) {
  return format == ExportFormat::kGguf || format == ExportFormat::kGgufLora;
}

// F16 ends at 65,504; what is rounded to more would be infinite. A block of Q8_0 has a scale in F16, its largest value
// divided by 127.
void check_range(const std::string& name, std::span<const float> values, GgmlType type) {
  if (type != GgmlType::kF16 && type != GgmlType::kQ8_0) return;
  const bool f16 = type == GgmlType::kF16;
  const float infinite = f16 ? 65520.0f : 65520.0f * 127.0f;
  for (const float value : values) {
    if (!(std::abs(value) >= infinite) || std::isinf(value)) continue;
    throw Error("[export] {}: expected values of up to {} for {}, found {}; choose --dtype bf16 or f32", name,
                f16 ? 65504 : 65504 * 127, f16 ? "f16" : "q8_0", value);
  }
}

// The same tensors, which check and count what is read of them.
std::vector<TensorSource> observed(const std::vector<TensorSource>& weights, const ExportOptions& options) {
  uint64_t total = 0;
  for (const TensorSource& tensor : weights) total += tensor.size();
  const auto done = std::make_shared<uint64_t>(0);
  std::vector<TensorSource> result = weights;
  for (TensorSource& tensor : result) {
    tensor.read = [&options, done, total, name = tensor.name, read = tensor.read](size_t first, std::span<float> out) {
      read(first, out);
      check_range(name, out, options.type);
      *done += out.size();
      if (options.progress) options.progress(std::min(*done, total), total);
    };
  }
  return result;
}

}  // namespace

ExportFormat export_format(std::string_view name) {
  const auto found = std::find_if(kFormats.begin(), kFormats.end(), [&](const auto& f) { return f.name == name; });
  if (found != kFormats.end()) return found->format;
  throw Error("[export] to: expected hf, gguf, peft or gguf-lora, found {}", in_quotes(name));
}

std::string_view format_name(ExportFormat format) {
  return std::find_if(kFormats.begin(), kFormats.end(), [&](const auto& f) { return f.format == format; })->name;
}

GgmlType export_type(std::string_view name) {
  const auto found = std::find_if(kTypes.begin(), kTypes.end(), [&](const NamedType& t) { return t.name == name; });
  if (found != kTypes.end()) return found->type;
  throw Error("[export] dtype: expected f32, f16, bf16 or q8_0, found {}", in_quotes(name));
}

ExportResult export_model(const ExportedModel& model, const fs::path& path, const ExportOptions& options) {
  fs::path out = path.has_filename() ? path : path.parent_path();  // without a trailing slash
  std::error_code ignored;
  if (fs::is_symlink(out, ignored) && fs::exists(out, ignored)) out = fs::canonical(out);
  if (out.empty()) {
    throw Error("[export] expected the name of a new {}, found none", writes_folder(options.to) ? "folder" : "file");
  }
  check_type(options);
  if (const std::string settings = unlike_hf(model.model); !settings.empty()) {
    throw Error(
        "[export] {}: expected a model that {} can open, a GPT-2, Llama or Qwen, found {}; its checkpoints contain the "
        "weights as safetensors",
        model.name, is_for_llama_cpp(options.to) ? "llama.cpp" : "transformers", settings);
  }
  check_free(out, options);
  create_folders(out.parent_path());
  remove_leftovers_of(out);
  ExportedModel copied = model;
  copied.weights = observed(model.weights, options);
  return kFormats[static_cast<size_t>(options.to)].write(copied, out, options);
}

}  // namespace quern::formats
