#include "checkpoint/hf_export.h"

#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "checkpoint/hf_tokenizer.h"
#include "checkpoint/safetensors.h"
#include "core/error.h"
#include "core/files.h"
#include "core/json.h"
#include "core/text.h"

namespace quern::checkpoint {
namespace {

namespace fs = std::filesystem;

void check_free(const fs::path& folder) {
  std::error_code code;
  const fs::file_status status = fs::status(folder, code);
  if (!fs::exists(status)) return;
  if (!fs::is_directory(status)) {
    throw Error("[export] {}: expected a new or empty folder, found a file; choose another name", folder.string());
  }
  const fs::directory_iterator entry(folder, code);
  if (code) throw Error("[export] {}: cannot list: {}", folder.string(), code.message());
  if (entry == fs::directory_iterator()) return;
  throw Error("[export] {}: expected a new or empty folder, found {} in it; choose another folder", folder.string(),
              in_quotes(entry->path().filename().string()));
}

std::string generation_config(int32_t end_of_text) {
  const nlohmann::ordered_json json = {
      {"bos_token_id", end_of_text}, {"eos_token_id", end_of_text}, {"pad_token_id", end_of_text}};
  return json_text(json, 2) + "\n";
}

std::vector<ExtraFile> files_of(const HfModel& model) {
  ExtraFile weights{.name = "model.safetensors", .text = {}};
  for (const TensorRef& ref : model.weights) {
    weights.tensors.push_back({ref.name, safetensors::Dtype::kF32, ref.shape, std::as_bytes(ref.values)});
  }
  std::vector<ExtraFile> files = {std::move(weights), {.name = "config.json", .text = to_json(model.config)}};
  if (model.config.end_of_text) {
    files.push_back({.name = "generation_config.json", .text = generation_config(*model.config.end_of_text)});
  }
  for (ExtraFile& file : hf_tokenizer_files(model.tokenizer, model.config.model.context))
    files.push_back(std::move(file));
  return files;
}

void write(const ExtraFile& contents, const fs::path& now, const fs::path& later) {
  FileWriter file(now / contents.name, later / contents.name);
  if (contents.tensors.empty()) {
    file.write(contents.text);
  } else {
    safetensors::write(file, contents.tensors, {{"format", "pt"}});  // transformers requires this key
  }
  file.close();
}

}  // namespace

std::vector<std::string> export_hf(const HfModel& model, fs::path folder) {
  if (!folder.has_filename()) folder = folder.parent_path();  // a trailing slash
  if (folder.empty()) throw Error("[export] expected the name of a new folder, found none");
  check_free(folder);
  create_folders(folder.parent_path());
  AtomicDirectory directory(folder);
  std::vector<std::string> names;
  for (const ExtraFile& file : files_of(model)) {
    write(file, directory.temporary(), folder);
    names.push_back(file.name);
  }
  check_free(folder);  // someone may have put a file there meanwhile
  directory.commit();
  return names;
}

}  // namespace quern::checkpoint
