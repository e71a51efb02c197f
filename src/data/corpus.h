// The text files, JSON Lines files and directories that a run reads.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/compressed_reader.h"
#include "data/encoding.h"

namespace quern::data {

// How files are read.
struct TextOptions {
  Encoding encoding = Encoding::kUtf8;
  std::string field = "text";  // of JSON Lines (json_lines.h)
};

// A file given by name is always included: as JSON Lines if it ends in .jsonl or .ndjson, otherwise as one text
// document. A directory is searched recursively, in the order of paths, for files that end in .txt .text .md .markdown
// .rst .org .tex .jsonl .ndjson, ignoring case. A further .gz or .zst is decompressed. Other files, and everything
// below a name that starts with a dot, are ignored; links to directories are not followed.
class Corpus {
 public:
  enum class Kind { kText, kJsonLines };
  struct File {
    std::filesystem::path path;
    Kind kind;
    uint64_t bytes;  // of the file, compressed or not
    Compression compression = Compression::kNone;
  };

  // What was found in a directory: numbers of files, by the ending of their names.
  struct Folder {
    std::filesystem::path path;
    std::map<std::string, uint64_t> read, not_text;
    uint64_t empty = 0;   // of those read
    uint64_t hidden = 0;  // files and directories
    uint64_t links = 0;   // to directories, or to nothing

    // "books: read 12 files: .txt (10), .jsonl (2)"
    std::string read_text() const;
    // "books: skipped 3 files: .png (2) and .pdf (1) are not text by their names; hidden (1)"; empty if there are none.
    std::string skipped_text() const;
  };

  // Finds the files without reading them. Error for a path that does not exist, a directory without any text, or if all
  // files are empty.
  explicit Corpus(const std::vector<std::filesystem::path>& paths, TextOptions options = {});

  // The first file that would be included from a directory, in the order of paths. Error if it cannot be listed.
  static std::optional<std::filesystem::path> first_text_in(const std::filesystem::path& folder);

  const std::vector<File>& files() const { return files_; }
  const std::vector<Folder>& folders() const { return folders_; }
  const TextOptions& options() const { return options_; }
  uint64_t bytes() const { return bytes_; }  // of the files, including JSON syntax

 private:
  void add_file(const std::filesystem::path& path);
  void add_folder(const std::filesystem::path& folder);

  TextOptions options_;
  std::vector<File> files_;
  std::vector<Folder> folders_;
  uint64_t bytes_ = 0;
};

}  // namespace quern::data
