#include "data/text_window.h"

#include <algorithm>

namespace quern::data {

bool TextWindow::read(uint64_t begin, uint64_t end, std::string& out) {
  if (source_->is_plain()) {
    const uint64_t last = std::min(end, source_->size());
    source_->read(std::min(begin, last), last, out);
    return last == source_->size();
  }
  move_to(begin);
  const bool more = read_until(*reader_, end - begin + 1, text_);  // one more, to see whether the text ends
  out.assign(text_, 0, end - begin);
  return !more;
}

void TextWindow::move_to(uint64_t begin) {
  if (reader_ == nullptr || begin < begin_) {
    reader_ = source_->open();
    text_.clear();
    begin_ = 0;
  }
  const uint64_t held = std::min<uint64_t>(begin - begin_, text_.size());
  text_.erase(0, held);
  reader_->skip(begin - begin_ - held);
  begin_ = begin;
}

}  // namespace quern::data
