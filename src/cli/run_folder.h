// The folder of a run, or one that is removed again for a run that is only to be measured.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

#include "core/error.h"

namespace quern::cli {

class RunFolder {
 public:
  // An empty name: a new folder among the system's temporary ones.
  explicit RunFolder(const std::string& name) : path_(name), temporary_(name.empty()) {
    if (!temporary_) return;
    std::string made = (std::filesystem::temp_directory_path() / "quern-XXXXXX").string();
    if (mkdtemp(made.data()) == nullptr) throw Error("train: {}: cannot make such a folder; name one with --run", made);
    path_ = made;
  }
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;
  ~RunFolder() {
    std::error_code ignored;
    if (temporary_) std::filesystem::remove_all(path_, ignored);
  }

  const std::filesystem::path& path() const { return path_; }
  bool temporary() const { return temporary_; }

 private:
  std::filesystem::path path_;
  bool temporary_;
};

}  // namespace quern::cli
