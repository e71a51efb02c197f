// Text that is read a part at a time: a file, or something in memory.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/steady_file.h"
#include "data/corpus.h"

namespace quern::data {

// Any thread.
class TextSource {
 public:
  explicit TextSource(const Corpus::File& file);
  TextSource(std::string name, std::string text);  // one document

  const std::string& name() const { return name_; }
  Corpus::Kind kind() const { return kind_; }
  uint64_t size() const { return size_; }

  // `out` becomes the bytes begin ... end - 1, end <= size(). Error when a file has changed or cannot be read.
  void read(uint64_t begin, uint64_t end, std::string& out) const;

 private:
  std::string name_;
  Corpus::Kind kind_ = Corpus::Kind::kText;
  std::optional<SteadyFile> file_;
  std::string text_;  // without a file
  uint64_t size_;
};

using TextSources = std::vector<std::shared_ptr<const TextSource>>;

// The files of the corpus that are not empty, in its order.
TextSources text_sources(const Corpus& corpus);

}  // namespace quern::data
