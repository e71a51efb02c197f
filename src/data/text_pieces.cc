#include "data/text_pieces.h"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "core/error.h"
#include "data/json_lines.h"
#include "data/token_buffer.h"

namespace quern::data {
namespace {

constexpr uint64_t kPieceBytes = TextPieces::kPieceBytes;

// The first line start at or after `at`, at most `end`. `text` receives the source from `from` to shortly after that
// position. The byte before `at` determines whether a line starts there, so from < at.
uint64_t next_line(const TextSource& source, uint64_t from, uint64_t at, uint64_t end, std::string& text) {
  std::string more;
  for (size_t looked = at - 1 - from;;) {
    if (const size_t found = text.find('\n', looked); found != std::string::npos) return from + found + 1;
    looked = text.size();
    const uint64_t next = from + text.size();
    if (next >= end) return end;
    source.read(next, std::min(end, next + kPieceBytes), more);
    text += more;
  }
}

// The best position to cut the text at or after `at`: piece_length() with the look-ahead that it needs. Only for
// positions inside the source.
uint64_t next_cut(const TextSource& source, uint64_t at, uint64_t end, std::string& text) {
  if (at == 0 || at >= end) return std::min(at, end);
  const uint64_t from = at - std::min(at, kPieceBytes);
  source.read(from, std::min(end, at + (at - from) + 1), text);
  return from + piece_length(text, at - from);
}

// The number of lines before `end`. Counted only when a message needs it.
uint64_t lines_before(const TextSource& source, uint64_t end) {
  uint64_t lines = 0;
  std::string text;
  for (uint64_t at = 0; at < end; at += kPieceBytes) {
    source.read(at, std::min(end, at + kPieceBytes), text);
    lines += static_cast<uint64_t>(std::count(text.begin(), text.end(), '\n'));
  }
  return lines;
}

}  // namespace

TextPieces::TextPieces(const TextSources& sources) {
  for (const std::shared_ptr<const TextSource>& source : sources) add(source, 0, source->size());
}

void TextPieces::add(std::shared_ptr<const TextSource> source, uint64_t begin, uint64_t end) {
  if (begin == end) return;
  parts_.push_back({std::move(source), begin, end, count_});
  count_ += (end - begin + kPieceBytes - 1) / kPieceBytes;
  bytes_ += end - begin;
}

void TextPieces::visit(uint64_t index, std::string& scratch, const Visitor& visit) const {
  assert(index < count_);
  const auto after = std::upper_bound(parts_.begin(), parts_.end(), index,
                                      [](uint64_t piece, const Part& part) { return piece < part.first_piece; });
  const Part& part = *std::prev(after);
  const bool lines = part.source->kind() == Corpus::Kind::kJsonLines;
  (lines ? visit_lines : visit_text)(part, index - part.first_piece, scratch, visit);
}

// Reads the piece and the ones before and after it, which determine where it is cut.
void TextPieces::visit_text(const Part& part, uint64_t piece, std::string& scratch, const Visitor& visit) {
  const uint64_t nominal = part.begin + piece * kPieceBytes;
  const uint64_t from = piece == 0 ? nominal : nominal - kPieceBytes;
  part.source->read(from, std::min(part.end, nominal + 2 * kPieceBytes + 1), scratch);
  const std::string_view text = scratch;
  const size_t begin = piece == 0 ? 0 : piece_length(text, kPieceBytes);
  const size_t end = nominal - from + piece_length(text.substr(nominal - from), kPieceBytes);
  if (begin >= end) return;
  visit({.text = text.substr(begin, end - begin),
         .ends_document = from + end == part.source->size(),
         .source = part.source->name(),
         .begin = from + begin});
}

void TextPieces::visit_lines(const Part& part, uint64_t piece, std::string& scratch, const Visitor& visit) {
  const TextSource& source = *part.source;
  const uint64_t nominal = part.begin + piece * kPieceBytes, limit = std::min(part.end, nominal + kPieceBytes);
  const uint64_t from = piece == 0 ? nominal : nominal - 1;
  source.read(from, limit, scratch);
  const uint64_t begin = piece == 0 ? nominal : next_line(source, from, nominal, limit, scratch);
  if (begin >= limit) return;
  const uint64_t end = limit == part.end ? limit : next_line(source, from, limit, part.end, scratch);
  const std::string_view lines = std::string_view(scratch).substr(begin - from, end - begin);
  try {
    for_each_json_line(lines, source.name(), [&](std::string_view text) {
      if (!text.empty()) visit({.text = text, .ends_document = true, .source = source.name(), .begin = begin});
    });
  } catch (const Error&) {
    for_each_json_line(
        lines, source.name(), [](std::string_view) {}, lines_before(source, begin));
    throw;  // it came from the visitor
  }
}

std::pair<TextPieces, TextPieces> TextPieces::split(double fraction) const {
  const auto cut = static_cast<uint64_t>(std::floor(static_cast<double>(bytes_) * (1 - fraction)));
  std::pair<TextPieces, TextPieces> halves;
  uint64_t before = 0;
  std::string text;
  for (const Part& part : parts_) {
    const uint64_t at = part.begin + std::clamp<uint64_t>(cut, before, before + part.end - part.begin) - before;
    uint64_t where = at;
    if (at > part.begin && at < part.end) {
      const bool lines = part.source->kind() == Corpus::Kind::kJsonLines;
      text.clear();
      where = lines ? next_line(*part.source, at - 1, at, part.end, text) : next_cut(*part.source, at, part.end, text);
    }
    halves.first.add(part.source, part.begin, where);
    halves.second.add(part.source, where, part.end);
    before += part.end - part.begin;
  }
  return halves;
}

}  // namespace quern::data
