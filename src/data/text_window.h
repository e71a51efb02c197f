// A part of a text that moves forward.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "data/text_source.h"

namespace quern::data {

// Reads a plain source anywhere. Of others, which can only be read from front to back, it holds the text from the last
// `begin` on; an earlier `begin` starts over.
class TextWindow {
 public:
  explicit TextWindow(std::shared_ptr<const TextSource> source) : source_(std::move(source)) {}

  const TextSource& source() const { return *source_; }

  // Sets `out` to the text begin ... end - 1, or less at its end. Returns whether the text ends there.
  bool read(uint64_t begin, uint64_t end, std::string& out);

  // How many bytes of the file were used, and how much text they gave; 0 for plain sources.
  uint64_t bytes_read() const { return reader_ ? reader_->consumed() : 0; }
  uint64_t text_read() const { return begin_ + text_.size(); }

 private:
  void move_to(uint64_t begin);

  std::shared_ptr<const TextSource> source_;
  std::unique_ptr<ByteReader> reader_;  // null for plain sources, and before the first read
  std::string text_;
  uint64_t begin_ = 0;  // of text_ in the source
};

}  // namespace quern::data
