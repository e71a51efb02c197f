#include "formats/export_target.h"

#include <string>
#include <string_view>
#include <system_error>

#include "core/error.h"
#include "core/text.h"
#include "formats/gguf.h"
#include "formats/gguf_export.h"
#include "formats/model_files.h"
#include "formats/peft.h"

namespace quern::formats {
namespace {

namespace fs = std::filesystem;

// The file with the weights, and the one that describes them.
struct FolderFiles {
  std::string_view weights, config;
};
FolderFiles files_of(ExportFormat format) {
  if (format == ExportFormat::kPeft) return {kPeftWeightsFile, kPeftConfigFile};
  return {"model.safetensors", "config.json"};
}

// Whether an export in this format wrote the weights in the folder, and can have written every other file.
bool is_folder_export(const fs::path& folder, ExportFormat format) {
  const FolderFiles files = files_of(format);
  std::error_code code;
  for (fs::directory_iterator entry(folder, code), end; !code && entry != end; entry.increment(code)) {
    const std::string name = entry->path().filename().string();
    const bool known = name == files.weights || name == files.config || name == "tokenizer.json";
    if (!known && !is_model_file(name)) return false;
    if (!entry->is_regular_file(code)) return false;
  }
  if (code) return false;
  try {
    return safetensors::File(folder / files.weights).metadata().contains(kWriterKey);
  } catch (const Error&) {  // none, or not a safetensors file
    return false;
  }
}

bool is_gguf_export(const fs::path& file, ExportFormat format) {
  try {
    const GgufFile found(file);
    return found.contains(kWriterKey) && (found.text("general.type") == kAdapterKind) == writes_adapters(format);
  } catch (const Error&) {
    return false;
  }
}

void check_folder(const fs::path& folder, const fs::file_status& status, const ExportOptions& options) {
  if (!fs::is_directory(status)) {
    throw Error("[export] {}: expected a new or empty folder, found a file; choose another name", folder.string());
  }
  std::error_code code;
  const fs::directory_iterator entry(folder, code);
  if (code) throw Error("[export] {}: cannot list: {}", folder.string(), code.message());
  if (entry == fs::directory_iterator()) return;
  const bool ours = is_folder_export(folder, options.to);
  if (options.force && ours) return;
  const std::string found = in_quotes(entry->path().filename().string());
  if (options.force) {
    throw Error("[export] {}: expected an earlier export to replace, found {} in it; choose another folder",
                folder.string(), found);
  }
  throw Error("[export] {}: expected a new or empty folder, found {} in it; choose another folder{}", folder.string(),
              found, ours ? ", or replace this export with --force" : "");
}

void check_file(const fs::path& file, const fs::file_status& status, const ExportOptions& options) {
  const bool ours = fs::is_regular_file(status) && is_gguf_export(file, options.to);
  if (options.force && ours) return;
  throw Error("[export] {}: expected the name of a new file, found {}; choose another name{}", file.string(),
              fs::is_directory(status) ? "a folder"
              : ours                   ? "an earlier export"
                                       : "another file",
              ours ? ", or replace it with --force" : "");
}

}  // namespace

void check_free(const fs::path& out, const ExportOptions& options) {
  std::error_code ignored;
  const fs::file_status status = fs::status(out, ignored);
  if (!fs::exists(status)) return;
  (writes_folder(options.to) ? check_folder : check_file)(out, status, options);
}

}  // namespace quern::formats
