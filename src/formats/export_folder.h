// Writes a folder with a safetensors file and texts.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "formats/export.h"

namespace quern::formats {

struct ExportFolder {
  std::string weights_name;           // "model.safetensors"
  std::vector<TensorSource> weights;  // with the names that the file has
  std::vector<checkpoint::ExtraFile> texts;
};

// Writes the folder, complete or not at all, with the mark of an export. Returns the names of the files.
std::vector<std::string> write_folder(const ExportFolder& contents, const std::filesystem::path& folder,
                                      const ExportOptions& options);

// What to say about a folder of this model.
std::vector<std::string> folder_remarks(const ExportedModel& model);

}  // namespace quern::formats
