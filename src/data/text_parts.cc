#include "data/text_parts.h"

#include <algorithm>
#include <string>

#include "core/error.h"
#include "data/json_lines.h"
#include "data/token_buffer.h"

namespace quern::data {
namespace {

constexpr size_t kPartBytes = TokenBuffer::kPieceBytes;

// The text in front of the reader, at least `wanted` bytes unless it ends before.
class Lookahead {
 public:
  explicit Lookahead(const TextSource& source) : reader_(source.open()), begin_(source.begin()) {
    reader_->skip(begin_);
  }

  std::string_view at_least(size_t wanted) {
    if (text_.size() - used_ < wanted) {
      text_.erase(0, used_);
      used_ = 0;
      ended_ = !read_until(*reader_, wanted + kPartBytes, text_);
    }
    return std::string_view(text_).substr(used_);
  }
  void use(size_t count) {
    used_ += count;
    begin_ += count;
  }
  bool ended() const { return ended_; }  // no text follows what at_least() returned
  uint64_t begin() const { return begin_; }
  uint64_t bytes_read() const { return reader_->consumed(); }

 private:
  std::unique_ptr<ByteReader> reader_;
  std::string text_;
  size_t used_ = 0;
  uint64_t begin_;
  bool ended_ = false;
};

void visit_text(const TextSource& source, CutRule rule, uint64_t bytes_before, const PartVisitor& visit) {
  Lookahead ahead(source);
  std::string scratch;
  for (;;) {
    const std::string_view rest = ahead.at_least(2 * kPartBytes + 1);
    if (rest.empty()) return;
    const size_t length = piece_length(rest, kPartBytes, rule);
    const bool is_last = ahead.ended() && length == rest.size();
    const char next = length < rest.size() ? rest[length] : '\0';
    visit({.text = clean_text(source, rest.substr(0, length), ahead.begin(), next, scratch),
           .source = source,
           .begin = ahead.begin(),
           .starts_document = ahead.begin() == source.begin(),
           .ends_document = is_last,
           .bytes_read = bytes_before + ahead.bytes_read()});
    ahead.use(length);
  }
}

// The length of the complete lines in the text ahead.
size_t complete_lines(const TextSource& source, Lookahead& ahead) {
  for (size_t wanted = kPartBytes;; wanted *= 2) {
    const std::string_view rest = ahead.at_least(wanted);
    if (ahead.ended()) return rest.size();
    if (const size_t end = rest.rfind('\n'); end != std::string_view::npos) return end + 1;
    check_line_length(source, ahead.begin(), rest.size());
  }
}

void visit_lines(const TextSource& source, uint64_t bytes_before, const PartVisitor& visit) {
  for_each_lines(source, [&](const TextLines& lines) {
    for_each_json_line({lines.content, source.name(), lines.lines_before, source.field()}, [&](std::string_view text) {
      if (text.empty()) return;
      visit({.text = text,
             .source = source,
             .begin = 0,
             .starts_document = true,
             .ends_document = true,
             .bytes_read = bytes_before + lines.bytes_read});
    });
    return true;
  });
}

}  // namespace

void for_each_lines(const TextSource& source, const std::function<bool(const TextLines& lines)>& visit) {
  Lookahead ahead(source);
  std::string scratch;
  uint64_t lines_before = 0;
  while (const size_t length = complete_lines(source, ahead)) {
    const std::string_view raw = ahead.at_least(length).substr(0, length);
    const std::string_view content = clean_text(source, raw, ahead.begin(), '\0', scratch);
    if (!visit({content, lines_before, ahead.bytes_read()})) return;
    lines_before += static_cast<uint64_t>(std::count(content.begin(), content.end(), '\n'));
    ahead.use(length);
  }
}

void for_each_part(const TextSources& sources, const PartVisitor& visit, CutRule rule) {
  uint64_t before = 0;
  for (const std::shared_ptr<const TextSource>& source : sources) {
    if (source->kind() == Corpus::Kind::kJsonLines) {
      visit_lines(*source, before, visit);
    } else {
      visit_text(*source, rule, before, visit);
    }
    before += source->size();
  }
}

std::string_view clean_text(const TextSource& source, std::string_view text, uint64_t begin, char next,
                            std::string& scratch) {
  if (source.form().kind == TextForm::Kind::kBytes) return text;
  check_utf8(text, source.name(), begin);
  return without_carriage_returns(text, next, scratch);
}

void check_line_length(const TextSource& source, uint64_t begin, size_t bytes) {
  if (source.is_plain() || bytes < kMaxLineBytes) return;
  throw Error("[data] {}: byte {} of the text: expected a line of at most {} bytes, found more", source.name(), begin,
              kMaxLineBytes);
}

}  // namespace quern::data
