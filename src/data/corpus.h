// Text files, folders of them, and JSON Lines as one sequence of documents.
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

// What is taken: a file that is named is taken whatever it is called, as JSON Lines if it ends in .jsonl or .ndjson, as
// one document of text otherwise. From a folder, with all folders below it and in the order of the paths, are taken:
// .txt .text .md .markdown .rst .org .tex, and .jsonl .ndjson; not other files, nor those below a name that starts with
// a dot; links to folders are not followed. Endings count in either case.
class Corpus {
 public:
  enum class Kind { kText, kJsonLines };
  struct File {
    std::filesystem::path path;
    Kind kind;
    uint64_t bytes;
  };

  // Finds the files; reads none of them. Throws Error for a path that does not exist, a folder without any text, and
  // when all files together are empty.
  explicit Corpus(const std::vector<std::filesystem::path>& paths);

  // A document, valid during the call, and the file that it is from.
  using Visitor = std::function<void(std::string_view document, const std::filesystem::path& file)>;

  // Visits every document in order: a text file whole, as a view of the mapped file; a line of JSON Lines after the
  // other. One file is mapped at a time, so nothing of the corpus is held after it was visited. Empty files and empty
  // documents are passed over.
  void for_each_document(const Visitor& visit) const;

  // The first file that would be taken from a folder, in the order of the paths. Error when it cannot be listed.
  static std::optional<std::filesystem::path> first_text_in(const std::filesystem::path& folder);

  const std::vector<File>& files() const { return files_; }
  uint64_t bytes() const { return bytes_; }              // of the files, JSON included
  uint64_t passed_over() const { return passed_over_; }  // files in the folders that are not taken

 private:
  void add_file(const std::filesystem::path& path);
  void add_folder(const std::filesystem::path& folder);

  std::vector<File> files_;
  uint64_t bytes_ = 0;
  uint64_t passed_over_ = 0;
};

}  // namespace quern::data
