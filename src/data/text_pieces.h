// Text cut into pieces that can be tokenised independently.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "data/cut_rule.h"
#include "data/text_source.h"

namespace quern::data {

// Piece k of a file starts at byte 64 Ki * k of its text, moved forward to the next position that tokens never cross:
// the start of a line in JSON Lines, or a position found by piece_length() with the rule in other text. So the start of
// a piece depends only on the bytes around it, pieces are independent of each other, and the tokens of all pieces in
// order are those of the whole text. A line longer than a piece belongs to the piece in which it starts; pieces that it
// covers are empty.
//
// If all files are plain (TextSource::is_plain), the text is indexed: the number of pieces is known, and any piece can
// be read. Compressed and converted files can only be read from front to back (PieceCursor).
//
// Immutable and thread-safe; copies share the sources. Memory does not depend on the length of the text.
class TextPieces {
 public:
  static constexpr uint64_t kPieceBytes = uint64_t{64} << 10;

  TextPieces() = default;
  explicit TextPieces(const TextSources& sources, CutRule rule = CutRule::kBeforeWhiteSpace);

  bool is_indexed() const { return is_indexed_; }
  bool empty() const { return parts_.empty(); }
  uint64_t files() const { return parts_.size(); }
  const TextSource& file(uint64_t index) const { return *parts_[index].source; }

  // Only for indexed text.
  uint64_t count() const { return count_; }
  uint64_t bytes() const { return bytes_; }

  // An element of a piece: a document or a part of one.
  struct Span {
    std::string_view text;  // valid during the call
    bool starts_document;
    bool ends_document;
    const std::string& source;  // its name
    uint64_t begin;             // of the piece in the source
  };
  using Visitor = std::function<void(const Span& span)>;

  // The bytes of a piece, not checked yet.
  struct Raw {
    std::string bytes;                                    // with some before and after the piece
    size_t begin = 0, end = 0;                            // of the piece
    uint64_t position = 0;                                // of its begin in the source
    bool starts_document = false, ends_document = false;  // if it is text
    const TextSource* source = nullptr;
  };

  // Visits the spans of a piece in order. Error if it is not text (check_utf8), or if a line of JSON Lines is not valid
  // (json_lines.h).
  static void visit(const Raw& raw, const Visitor& visit);

  // Reads and visits piece `index` < count() of indexed text; `scratch` is reusable memory. Error also if a file has
  // changed or cannot be read.
  void visit(uint64_t index, Raw& scratch, const Visitor& visit) const;

  // Training text and held-out text. Indexed text: the parts before and after byte floor(bytes() * (1 - fraction)),
  // moved forward to the next position that tokens never cross. Otherwise the length is not known, and the pieces are
  // divided: piece p of file f is held out if ceil(fraction * i) < ceil(fraction * (i + 1)) with i = f + p, that is,
  // with 0.1, the first piece of the first file, and then every tenth.
  std::pair<TextPieces, TextPieces> split(double fraction) const;

 private:
  friend class PieceCursor;

  // Bytes begin ... end - 1 of a source; end is UINT64_MAX if it is not plain.
  struct Part {
    std::shared_ptr<const TextSource> source;
    uint64_t begin, end;
    uint64_t first_piece;  // index of its first piece, if the text is indexed
  };
  enum class Pieces : uint8_t { kAll, kTraining, kHeldOut };

  void add(std::shared_ptr<const TextSource> source, uint64_t begin, uint64_t end);
  bool includes(uint64_t file, uint64_t piece) const;

  std::vector<Part> parts_;
  CutRule rule_ = CutRule::kBeforeWhiteSpace;
  bool is_indexed_ = true;
  Pieces included_ = Pieces::kAll;
  double fraction_ = 0;  // of the held-out pieces
  uint64_t count_ = 0;
  uint64_t bytes_ = 0;
};

// The place of a piece. Of indexed text: `piece` counts from the start of the text and continues to increase when the
// text starts over, `file` is 0. Otherwise: `piece` counts from the start of the file, `file` continues to increase.
struct PieceIndex {
  uint64_t file = 0;
  uint64_t piece = 0;
  bool operator==(const PieceIndex&) const = default;
};

class TextWindow;

// Reads the pieces of a text in order and starts over after the last one. One thread at a time.
class PieceCursor {
 public:
  // `text` must outlive the cursor. If it is not indexed, the file is decompressed up to the first piece.
  explicit PieceCursor(const TextPieces& text, const PieceIndex& first = {});
  ~PieceCursor();

  // Reads the next piece. Error if a file has changed, cannot be read or is damaged, or if there is no piece at all.
  PieceIndex next(TextPieces::Raw& raw);

  // How often the text was complete before this piece.
  uint64_t round(const PieceIndex& index) const;

  // How many bytes of the current file were used, and how much text they gave; 0 if it is plain.
  uint64_t bytes_read() const;
  uint64_t text_read() const;

 private:
  bool read(const TextPieces::Part& part, uint64_t piece, TextPieces::Raw& raw);

  const TextPieces* text_;
  PieceIndex next_;
  std::unique_ptr<TextWindow> window_;
};

}  // namespace quern::data
