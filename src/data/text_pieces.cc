#include "data/text_pieces.h"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "core/error.h"
#include "data/json_lines.h"
#include "data/text_parts.h"
#include "data/text_window.h"
#include "data/token_buffer.h"

namespace quern::data {
namespace {

constexpr uint64_t kPieceBytes = TextPieces::kPieceBytes;

// The first line start at or after `at`, at most `end`. `text` receives the source from `from` to shortly after that
// position. The byte before `at` determines whether a line starts there, so from < at.
uint64_t next_line(TextWindow& window, uint64_t from, uint64_t at, uint64_t end, std::string& text) {
  for (size_t looked = at - 1 - from;;) {
    if (const size_t found = text.find('\n', looked); found != std::string::npos) return from + found + 1;
    looked = text.size();
    check_line_length(window.source(), from, text.size());
    const uint64_t more = std::max<uint64_t>(kPieceBytes, text.size());  // doubled, so that long lines cost no more
    const uint64_t wanted = std::min(end, from + text.size() + more);
    const bool ended = window.read(from, wanted, text);
    if (text.size() == looked && (ended || wanted == end)) return from + looked;
  }
}

// The best position to cut the text at or after `at`: piece_length() with the look-ahead that it needs. Only for
// positions inside a plain source.
uint64_t next_cut(TextWindow& window, CutRule rule, uint64_t at, uint64_t end, std::string& text) {
  if (at == 0 || at >= end) return std::min(at, end);
  const uint64_t from = at - std::min(at, kPieceBytes);
  window.read(from, std::min(end, at + (at - from) + 1), text);
  return from + piece_length(text, at - from, rule);
}

// The number of lines before `end`. Counted only when a message needs it.
uint64_t lines_before(const TextSource& source, uint64_t end) {
  uint64_t lines = 0;
  std::string text;
  const std::unique_ptr<ByteReader> reader = source.open();
  for (uint64_t at = 0; at < end; at += text.size()) {
    text.clear();
    read_until(*reader, std::min(kPieceBytes, end - at), text);
    if (text.empty()) break;
    lines += static_cast<uint64_t>(std::count(text.begin(), text.end(), '\n'));
  }
  return lines;
}

// Reads piece number `piece` of the bytes begin ... end - 1 and the pieces before and after it, which determine where
// it is cut. Returns false if the text ends before it.
bool read_text(TextWindow& window, CutRule rule, uint64_t begin, uint64_t end, uint64_t piece, TextPieces::Raw& raw) {
  const uint64_t nominal = begin + piece * kPieceBytes;
  const uint64_t from = piece == 0 ? nominal : nominal - kPieceBytes;
  const bool ended = window.read(from, std::min(end, nominal + 2 * kPieceBytes + 1), raw.bytes);
  const std::string_view text = raw.bytes;
  if (text.size() <= nominal - from) return false;
  raw.begin = piece == 0 ? 0 : piece_length(text, kPieceBytes, rule);
  raw.end = std::max(raw.begin, nominal - from + piece_length(text.substr(nominal - from), kPieceBytes, rule));
  raw.position = from + raw.begin;
  raw.starts_document = raw.position == window.source().begin();
  raw.ends_document = ended && raw.end == text.size();
  return true;
}

bool read_lines(TextWindow& window, uint64_t begin, uint64_t end, uint64_t piece, TextPieces::Raw& raw) {
  const uint64_t nominal = begin + piece * kPieceBytes;
  const uint64_t from = piece == 0 ? nominal : nominal - 1;
  uint64_t limit = std::min(end, nominal + kPieceBytes);
  const bool ended = window.read(from, limit, raw.bytes);
  limit = from + raw.bytes.size();
  if (limit <= nominal) return false;
  const uint64_t first = piece == 0 ? nominal : next_line(window, from, nominal, limit, raw.bytes);
  const bool complete = first >= limit || ended || limit == end;
  const uint64_t last = complete ? std::max(first, limit) : next_line(window, from, limit, end, raw.bytes);
  raw.begin = first - from;
  raw.end = last - from;
  raw.position = first;
  return true;
}

void visit_lines(const TextPieces::Raw& raw, std::string_view bytes, std::string& scratch,
                 const TextPieces::Visitor& visit) {
  const TextSource& source = *raw.source;
  JsonLines lines{clean_text(source, bytes, raw.position, '\0', scratch), source.name(), 0, source.field()};
  try {
    for_each_json_line(lines, [&](std::string_view text) {
      if (!text.empty())
        visit({.text = text,
               .starts_document = true,
               .ends_document = true,
               .source = source.name(),
               .begin = raw.position});
    });
  } catch (const Error&) {
    lines.lines_before = lines_before(source, raw.position);
    for_each_json_line(lines, [](std::string_view) {});
    throw;  // it came from the visitor
  }
}

}  // namespace

TextPieces::TextPieces(const TextSources& sources, CutRule rule) : rule_(rule) {
  for (const std::shared_ptr<const TextSource>& source : sources) is_indexed_ &= source->is_plain();
  for (const std::shared_ptr<const TextSource>& source : sources) {
    add(source, source->begin(), source->is_plain() ? source->size() : UINT64_MAX);
  }
}

void TextPieces::add(std::shared_ptr<const TextSource> source, uint64_t begin, uint64_t end) {
  if (begin == end) return;
  parts_.push_back({std::move(source), begin, end, count_});
  if (!is_indexed_) return;
  count_ += (end - begin + kPieceBytes - 1) / kPieceBytes;
  bytes_ += end - begin;
}

void TextPieces::visit(uint64_t index, Raw& scratch, const Visitor& visit) const {
  assert(is_indexed_ && index < count_);
  PieceCursor(*this, {0, index}).next(scratch);
  TextPieces::visit(scratch, visit);
}

void TextPieces::visit(const Raw& raw, const Visitor& visit) {
  thread_local std::string scratch;
  const std::string_view bytes = std::string_view(raw.bytes).substr(raw.begin, raw.end - raw.begin);
  if (bytes.empty()) return;
  if (raw.source->kind() == Corpus::Kind::kJsonLines) return visit_lines(raw, bytes, scratch, visit);
  const char next = raw.end < raw.bytes.size() ? raw.bytes[raw.end] : '\0';
  visit({.text = clean_text(*raw.source, bytes, raw.position, next, scratch),
         .starts_document = raw.starts_document,
         .ends_document = raw.ends_document,
         .source = raw.source->name(),
         .begin = raw.position});
}

bool TextPieces::includes(uint64_t file, uint64_t piece) const {
  if (included_ == Pieces::kAll) return true;
  const auto i = static_cast<double>(file + piece);
  const bool held_out = std::ceil(fraction_ * i) < std::ceil(fraction_ * (i + 1));
  return held_out == (included_ == Pieces::kHeldOut);
}

std::pair<TextPieces, TextPieces> TextPieces::split(double fraction) const {
  std::pair<TextPieces, TextPieces> halves;
  halves.first.rule_ = halves.second.rule_ = rule_;
  if (!is_indexed_) {
    halves = {*this, fraction > 0 ? *this : TextPieces()};
    halves.first.fraction_ = halves.second.fraction_ = fraction;
    halves.first.included_ = Pieces::kTraining;
    halves.second.included_ = Pieces::kHeldOut;
    return halves;
  }
  const auto cut = static_cast<uint64_t>(std::floor(static_cast<double>(bytes_) * (1 - fraction)));
  uint64_t before = 0;
  std::string text;
  for (const Part& part : parts_) {
    const uint64_t at = part.begin + std::clamp<uint64_t>(cut, before, before + part.end - part.begin) - before;
    uint64_t where = at;
    if (at > part.begin && at < part.end) {
      const bool lines = part.source->kind() == Corpus::Kind::kJsonLines;
      TextWindow window(part.source);
      text.clear();
      where = lines ? next_line(window, at - 1, at, part.end, text) : next_cut(window, rule_, at, part.end, text);
    }
    halves.first.add(part.source, part.begin, where);
    halves.second.add(part.source, where, part.end);
    before += part.end - part.begin;
  }
  return halves;
}

PieceCursor::PieceCursor(const TextPieces& text, const PieceIndex& first) : text_(&text), next_(first) {}
PieceCursor::~PieceCursor() = default;

uint64_t PieceCursor::round(const PieceIndex& index) const {
  return text_->is_indexed() ? index.piece / text_->count() : index.file / text_->files();
}

uint64_t PieceCursor::bytes_read() const { return window_ ? window_->bytes_read() : 0; }
uint64_t PieceCursor::text_read() const { return window_ ? window_->text_read() : 0; }

bool PieceCursor::read(const TextPieces::Part& part, uint64_t piece, TextPieces::Raw& raw) {
  if (window_ == nullptr || &window_->source() != part.source.get())
    window_ = std::make_unique<TextWindow>(part.source);
  raw.source = part.source.get();
  const bool lines = part.source->kind() == Corpus::Kind::kJsonLines;
  if (lines) return read_lines(*window_, part.begin, part.end, piece, raw);
  return read_text(*window_, text_->rule_, part.begin, part.end, piece, raw);
}

PieceIndex PieceCursor::next(TextPieces::Raw& raw) {
  const std::vector<TextPieces::Part>& parts = text_->parts_;
  if (text_->is_indexed()) {
    const uint64_t index = next_.piece % text_->count();
    const auto after =
        std::upper_bound(parts.begin(), parts.end(), index,
                         [](uint64_t piece, const TextPieces::Part& part) { return piece < part.first_piece; });
    const TextPieces::Part& part = *std::prev(after);
    read(part, index - part.first_piece, raw);
    return {0, next_.piece++};
  }
  for (uint64_t ended = 0; ended <= 2 * parts.size();) {
    const PieceIndex index = next_;
    ++next_.piece;
    const uint64_t file = index.file % parts.size();
    if (!text_->includes(file, index.piece)) {
      // The piece before may have been the last; whether it was shows at one that is included.
      continue;
    }
    if (read(parts[file], index.piece, raw)) return index;
    next_ = {index.file + 1, 0};
    window_.reset();
    ++ended;
  }
  const std::string name = parts.front().source->name();
  if (text_->included_ == TextPieces::Pieces::kTraining && text_->fraction_ > 0) {
    throw Error(
        "[data] {}: expected more than {} KiB of text, because streams of compressed or converted files hold out whole "
        "pieces of that size, found less; use data.sampling=random, or data.validation_fraction=0",
        name, kPieceBytes / 1024);
  }
  throw Error("[data] {}: expected text, found only empty documents", name);
}

}  // namespace quern::data
