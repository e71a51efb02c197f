// Text that is read in parts: a file, or a string in memory.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/steady_file.h"
#include "data/corpus.h"

namespace quern::data {

// Thread-safe.
class TextSource {
 public:
  explicit TextSource(const Corpus::File& file);
  TextSource(std::string name, std::string text);  // one document

  const std::string& name() const { return name_; }
  Corpus::Kind kind() const { return kind_; }
  uint64_t size() const { return size_; }

  // Sets `out` to the bytes begin ... end - 1, end <= size(). Error if a file has changed or cannot be read.
  void read(uint64_t begin, uint64_t end, std::string& out) const;

 private:
  std::string name_;
  Corpus::Kind kind_ = Corpus::Kind::kText;
  std::optional<SteadyFile> file_;
  std::string text_;  // if there is no file
  uint64_t size_;
};

using TextSources = std::vector<std::shared_ptr<const TextSource>>;

// The files of the corpus that are not empty, in order.
TextSources text_sources(const Corpus& corpus);

}  // namespace quern::data
