#include "formats/export.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <system_error>

#include "core/error.h"
#include "core/files.h"
#include "core/text.h"
#include "formats/gguf.h"
#include "formats/hf_config.h"
#include "formats/model_files.h"

namespace quern::formats {
namespace {

namespace fs = std::filesystem;

struct NamedType {
  std::string_view name;
  GgmlType type;
};
constexpr std::array<NamedType, 4> kTypes = {
    {{"f32", GgmlType::kF32}, {"f16", GgmlType::kF16}, {"bf16", GgmlType::kBF16}, {"q8_0", GgmlType::kQ8_0}}};

// Whether export_hf() wrote the weights in this folder, and can have written every other file. A folder or a file of
// another program is not replaced: it may be the only copy of a model.
bool is_hf_export(const fs::path& folder) {
  std::error_code code;
  for (fs::directory_iterator entry(folder, code), end; !code && entry != end; entry.increment(code)) {
    const std::string name = entry->path().filename().string();
    const bool weights = name == "model.safetensors";
    if (!weights && name != "config.json" && name != "tokenizer.json" && !is_model_file(name)) return false;
    if (!entry->is_regular_file(code)) return false;
  }
  if (code) return false;
  try {
    return safetensors::File(folder / "model.safetensors").metadata().contains(kWriterKey);
  } catch (const Error&) {  // none, or not a safetensors file
    return false;
  }
}

bool is_gguf_export(const fs::path& file) {
  try {
    return GgufFile(file).contains(kWriterKey);
  } catch (const Error&) {
    return false;
  }
}

void check_folder(const fs::path& folder, const fs::file_status& status, bool force) {
  if (!fs::is_directory(status)) {
    throw Error("[export] {}: expected a new or empty folder, found a file; choose another name", folder.string());
  }
  std::error_code code;
  const fs::directory_iterator entry(folder, code);
  if (code) throw Error("[export] {}: cannot list: {}", folder.string(), code.message());
  if (entry == fs::directory_iterator()) return;
  if (force && is_hf_export(folder)) return;
  const std::string found = in_quotes(entry->path().filename().string());
  if (force) {
    throw Error("[export] {}: expected an earlier export to replace, found {} in it; choose another folder",
                folder.string(), found);
  }
  throw Error("[export] {}: expected a new or empty folder, found {} in it; choose another folder{}", folder.string(),
              found, is_hf_export(folder) ? ", or replace this export with --force" : "");
}

void check_file(const fs::path& file, const fs::file_status& status, bool force) {
  const bool ours = fs::is_regular_file(status) && is_gguf_export(file);
  if (force && ours) return;
  throw Error("[export] {}: expected the name of a new file, found {}; choose another name{}", file.string(),
              fs::is_directory(status) ? "a folder"
              : ours                   ? "an earlier export"
                                       : "another file",
              ours ? ", or replace it with --force" : "");
}

void check_free(const fs::path& out, const ExportOptions& options) {
  std::error_code ignored;
  const fs::file_status status = fs::status(out, ignored);
  if (!fs::exists(status)) return;
  (options.to == ExportFormat::kHf ? check_folder : check_file)(out, status, options.force);
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
  if (name == "hf") return ExportFormat::kHf;
  if (name == "gguf") return ExportFormat::kGguf;
  throw Error("[export] to: expected hf or gguf, found {}", in_quotes(name));
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
  const bool hf = options.to == ExportFormat::kHf;
  if (out.empty()) throw Error("[export] expected the name of a new {}, found none", hf ? "folder" : "file");
  if (hf && options.type == GgmlType::kQ8_0) {
    throw Error("[export] dtype: expected f32, f16 or bf16 for a Hugging Face folder, found q8_0; choose --to gguf");
  }
  if (const std::string settings = unlike_hf(model.model); !settings.empty()) {
    throw Error(
        "[export] {}: expected a model that {} can open, a GPT-2, Llama or Qwen, found {}; its checkpoints contain the "
        "weights as safetensors",
        model.name, hf ? "transformers" : "llama.cpp", settings);
  }
  check_free(out, options);
  create_folders(out.parent_path());
  remove_leftovers_of(out);
  ExportedModel copied = model;
  copied.weights = observed(model.weights, options);
  return (hf ? export_hf : export_gguf)(copied, out, options);
}

}  // namespace quern::formats
