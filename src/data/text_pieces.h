// Text cut into pieces that can be read and tokenised one by one, in any order.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "data/text_source.h"

namespace quern::data {

// Piece k of a file starts at byte 64 Ki * k, moved on to the next place where tokens never cross: the start of a line
// of JSON Lines, in other text a place as piece_length() finds it. So where a piece begins depends on the bytes there
// and on nothing else, no piece needs another, and the tokens of all pieces in order are those of the whole text. A
// line that is longer than a piece belongs to the piece in which it starts; pieces that it covers are empty.
//
// Immutable, any thread; copies share the sources. Memory does not depend on the length of the text.
class TextPieces {
 public:
  static constexpr uint64_t kPieceBytes = uint64_t{64} << 10;

  TextPieces() = default;
  explicit TextPieces(const TextSources& sources);

  uint64_t count() const { return count_; }
  uint64_t bytes() const { return bytes_; }

  // What a piece is made of: a document or a part of one.
  struct Span {
    std::string_view text;  // valid during the call
    bool ends_document;
    const std::string& source;  // its name
    uint64_t begin;             // of the piece in the source
  };
  using Visitor = std::function<void(const Span& span)>;

  // Visits what piece `index` < count() holds, in order; `scratch` is memory to be used again. Error when a file has
  // changed or cannot be read, and for a line of JSON Lines that is not as json_lines.h says.
  void visit(uint64_t index, std::string& scratch, const Visitor& visit) const;

  // The text before and after byte floor(bytes() * (1 - fraction)), moved on to the next place where tokens never
  // cross.
  std::pair<TextPieces, TextPieces> split(double fraction) const;

 private:
  // Bytes begin ... end - 1 of a source.
  struct Part {
    std::shared_ptr<const TextSource> source;
    uint64_t begin, end;
    uint64_t first_piece;  // of all
  };

  void add(std::shared_ptr<const TextSource> source, uint64_t begin, uint64_t end);
  static void visit_text(const Part& part, uint64_t piece, std::string& scratch, const Visitor& visit);
  static void visit_lines(const Part& part, uint64_t piece, std::string& scratch, const Visitor& visit);

  std::vector<Part> parts_;
  uint64_t count_ = 0;
  uint64_t bytes_ = 0;
};

}  // namespace quern::data
