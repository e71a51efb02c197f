// The directory of a run, or a temporary one for a run that is only profiled.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "core/temporary_folder.h"

namespace quern::cli {

class RunFolder {
 public:
  // An empty name creates a temporary directory, removed by the destructor.
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
