// Text files, directories and JSON Lines files as one sequence of documents.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/json_lines.h"

namespace quern::data {

// A file given by name is always included: as JSON Lines if it ends in .jsonl or .ndjson, otherwise as one text
// document. A directory is searched recursively, in the order of paths, for files that end in .txt .text .md .markdown
// .rst .org .tex .jsonl .ndjson, ignoring case. Other files, and everything below a name that starts with a dot, are
// ignored; links to directories are not followed.
class Corpus {
 public:
  enum class Kind { kText, kJsonLines };
  struct File {
    std::filesystem::path path;
    Kind kind;
    uint64_t bytes;
  };

  // Finds the files without reading them. Error for a path that does not exist, a directory without any text, or if all
  // files are empty.
  explicit Corpus(const std::vector<std::filesystem::path>& paths);

  // A document, valid during the call, and the file that contains it.
  using Visitor = std::function<void(std::string_view document, const std::filesystem::path& file)>;

  // Visits every document in order: a text file as a view of the mapped file, JSON Lines line by line. Only one file is
  // mapped at a time, so no part of the corpus stays in memory after its visit. Empty files and documents are skipped.
  void for_each_document(const Visitor& visit) const;

  // The first file that would be included from a directory, in the order of paths. Error if it cannot be listed.
  static std::optional<std::filesystem::path> first_text_in(const std::filesystem::path& folder);

  const std::vector<File>& files() const { return files_; }
  uint64_t bytes() const { return bytes_; }              // of the files, including JSON syntax
  uint64_t passed_over() const { return passed_over_; }  // ignored files in the directories

 private:
  void add_file(const std::filesystem::path& path);
  void add_folder(const std::filesystem::path& folder);

  std::vector<File> files_;
  uint64_t bytes_ = 0;
  uint64_t passed_over_ = 0;
};

}  // namespace quern::data
