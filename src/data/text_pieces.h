// Text cut into pieces that can be read and tokenised independently, in any order.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "data/text_source.h"

namespace quern::data {

// Piece k of a file starts at byte 64 Ki * k, moved forward to the next position that tokens never cross: the start of
// a line in JSON Lines, or a position found by piece_length() in other text. So the start of a piece depends only on
// the bytes around it, pieces are independent of each other, and the tokens of all pieces in order are those of the
// whole text. A line longer than a piece belongs to the piece in which it starts; pieces that it covers are empty.
//
// Immutable and thread-safe; copies share the sources. Memory does not depend on the length of the text.
class TextPieces {
 public:
  static constexpr uint64_t kPieceBytes = uint64_t{64} << 10;

  TextPieces() = default;
  explicit TextPieces(const TextSources& sources);

  uint64_t count() const { return count_; }
  uint64_t bytes() const { return bytes_; }

  // An element of a piece: a document or a part of one.
  struct Span {
    std::string_view text;  // valid during the call
    bool ends_document;
    const std::string& source;  // its name
    uint64_t begin;             // of the piece in the source
  };
  using Visitor = std::function<void(const Span& span)>;

  // Visits the spans of piece `index` < count() in order; `scratch` is reusable memory. Error if a file has changed or
  // cannot be read, or if a line of JSON Lines is not valid (json_lines.h).
  void visit(uint64_t index, std::string& scratch, const Visitor& visit) const;

  // The text before and after byte floor(bytes() * (1 - fraction)), moved forward to the next position that tokens
  // never cross.
  std::pair<TextPieces, TextPieces> split(double fraction) const;

 private:
  // Bytes begin ... end - 1 of a source.
  struct Part {
    std::shared_ptr<const TextSource> source;
    uint64_t begin, end;
    uint64_t first_piece;  // index of its first piece
  };

  void add(std::shared_ptr<const TextSource> source, uint64_t begin, uint64_t end);
  static void visit_text(const Part& part, uint64_t piece, std::string& scratch, const Visitor& visit);
  static void visit_lines(const Part& part, uint64_t piece, std::string& scratch, const Visitor& visit);

  std::vector<Part> parts_;
  uint64_t count_ = 0;
  uint64_t bytes_ = 0;
};

}  // namespace quern::data
