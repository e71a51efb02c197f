#include "formats/import_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>

#include "config/run_folder.h"
#include "core/error.h"
#include "formats/model_files.h"

namespace quern::formats {
namespace {

namespace fs = std::filesystem;

void check_free(const fs::path& run) {
  train::expect_folder(run);
  std::error_code ignored;
  if (!fs::exists(run, ignored) || fs::is_empty(run, ignored)) return;
  if (fs::exists(run / train::kConfigFile, ignored)) {
    throw Error("[import] {}: holds a run already; choose another folder", run.string());
  }
  throw Error("[import] {}: expected a new or empty folder, found files in it; choose another folder", run.string());
}

}  // namespace

fs::path new_run_folder(const fs::path& run) {
  fs::path folder = run.has_filename() ? run : run.parent_path();
  if (folder.empty()) throw Error("[import] expected the name of a new run, found none");
  check_free(folder);
  return folder;
}

uint64_t checked_context(const ImportOptions& options, uint64_t positions) {
  if (!options.context) return std::min(positions, kImportedContext);
  if (*options.context >= 1 && *options.context <= positions) return *options.context;
  throw Error("[import] context: expected 1 to {}, the positions of the model, found {}", positions, *options.context);
}

// Only the size of `values` is used, the values come from the encoder.
std::vector<checkpoint::TensorRef> tensor_refs(std::span<const TensorSource> tensors, TensorEncoder& encoder,
                                               const ImportOptions& options) {
  uint64_t total = 0;
  for (const TensorSource& tensor : tensors) total += tensor.size() * sizeof(float);
  std::vector<checkpoint::TensorRef> refs;
  uint64_t before = 0;
  for (const TensorSource& tensor : tensors) {
    auto read = [next = encoder.reader(tensor, GgmlType::kF32), before, total, &options](size_t at) {
      if (options.progress) options.progress(before + at, total);
      return next(at);
    };
    refs.push_back({tensor.name, tensor.shape, {static_cast<float*>(nullptr), tensor.size()}, std::move(read)});
    before += tensor.size() * sizeof(float);
  }
  return refs;
}

std::string tokenizer_text(const data::Tokenizer* tokenizer) {
  return tokenizer == nullptr ? "" : fmt::format("{}, {} tokens", tokenizer->name(), tokenizer->vocabulary_size());
}

bool has_chat_template(std::span<const checkpoint::ExtraFile> files) {
  if (find_file(files, kChatTemplateFile) != nullptr) return true;
  const std::string* config = find_file(files, kTokenizerConfigFile);
  return config != nullptr && parse_json(*config).contains("chat_template");
}

}  // namespace quern::formats
