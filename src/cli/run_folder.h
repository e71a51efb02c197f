// The folder of a run, or one that is removed again for a run that is only to be measured.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "core/temporary_folder.h"

namespace quern::cli {

class RunFolder {
 public:
  // An empty name: a new folder among the system's temporary ones.
  explicit RunFolder(const std::string& name) : path_(name) {
    if (name.empty()) path_ = temporary_.emplace().path();
  }

  const std::filesystem::path& path() const { return path_; }
  bool temporary() const { return temporary_.has_value(); }

 private:
  std::filesystem::path path_;
  std::optional<TemporaryFolder> temporary_;
};

}  // namespace quern::cli
