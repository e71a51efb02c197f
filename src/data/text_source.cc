#include "data/text_source.h"

#include <utility>

namespace quern::data {

TextSource::TextSource(const Corpus::File& file)
    : name_(file.path.string()), kind_(file.kind), file_(file.path), size_(file_->size()) {}

TextSource::TextSource(std::string name, std::string text)
    : name_(std::move(name)), text_(std::move(text)), size_(text_.size()) {}

void TextSource::read(uint64_t begin, uint64_t end, std::string& out) const {
  if (file_) return file_->read(begin, end, out);
  out.assign(text_, begin, end - begin);
}

TextSources text_sources(const Corpus& corpus) {
  TextSources sources;
  for (const Corpus::File& file : corpus.files()) {
    auto source = std::make_shared<TextSource>(file);
    if (source->size() > 0) sources.push_back(std::move(source));
  }
  return sources;
}

}  // namespace quern::data
