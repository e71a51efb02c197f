// Text that is read in parts: a file, or a string in memory.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/steady_file.h"
#include "data/byte_reader.h"
#include "data/corpus.h"

namespace quern::data {

// Bytes are those of the file. Text is what they stand for: decompressed, and in UTF-8 unless the encoding is kBytes;
// CR LF is not replaced yet. Thread-safe.
class TextSource {
 public:
  // Reads the beginning of the file to find its encoding. Throws the errors of find_form() and decompress().
  TextSource(const Corpus::File& file, const TextOptions& options);
  TextSource(std::string name, std::string text);  // one document

  const std::string& name() const { return name_; }
  Corpus::Kind kind() const { return kind_; }
  const TextForm& form() const { return form_; }
  const std::string& field() const { return field_; }
  bool is_compressed() const { return compression_ != Compression::kNone; }
  // Whether the beginning of the text has a line that ends in CR LF.
  bool has_carriage_returns() const { return has_carriage_returns_; }

  uint64_t size() const { return size_; }  // in bytes
  // Sets `out` to the bytes begin ... end - 1, end <= size(). Error if a file has changed or cannot be read.
  void read(uint64_t begin, uint64_t end, std::string& out) const;

  // Whether the bytes are the text, so that it can be read anywhere and its size is known.
  bool is_plain() const { return !is_compressed() && !form_.is_converted(); }
  // Where the text begins in what open() returns: after a byte order mark that is still there.
  uint64_t begin() const { return form_.is_converted() ? 0 : form_.mark; }
  // The text from front to back. This object must outlive the reader.
  std::unique_ptr<ByteReader> open() const;

  // What is done to the text, such as "replaced CR LF by LF"; empty if nothing is.
  std::string conversions() const;

 private:
  std::unique_ptr<ByteReader> open_bytes() const;

  std::string name_;
  Corpus::Kind kind_ = Corpus::Kind::kText;
  std::optional<SteadyFile> file_;
  std::string text_;  // if there is no file
  uint64_t size_;
  Compression compression_ = Compression::kNone;
  TextForm form_;
  std::string field_;
  bool has_carriage_returns_ = false;
};

using TextSources = std::vector<std::shared_ptr<const TextSource>>;

// The files of the corpus that are not empty, in order.
TextSources text_sources(const Corpus& corpus);

// One line for each kind of conversion, with the number of files.
std::vector<std::string> conversions_text(const TextSources& sources);

}  // namespace quern::data
