// Text from front to back.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "data/cut_rule.h"
#include "data/text_source.h"

namespace quern::data {

// A document or a part of one. Parts are cut by a rule (cut_rule.h), so that no token crosses them.
struct TextPart {
  std::string_view text;  // UTF-8 with LF, except for Encoding::kBytes; valid during the call
  const TextSource& source;
  uint64_t begin;  // position in the source's text
  bool starts_document;
  bool ends_document;
  uint64_t bytes_read;  // of all sources so far
};
using PartVisitor = std::function<void(const TextPart& part)>;

// Visits every document in order. Holds no more than a few megabytes of text at a time, or one document of JSON Lines.
// Empty documents are skipped. Error, with file and position, for a file that is damaged, is not text, or changes
// meanwhile.
void for_each_part(const TextSources& sources, const PartVisitor& visit, CutRule rule = CutRule::kBeforeWhiteSpace);

// Complete lines of a source, in UTF-8 with LF; valid during the call.
struct TextLines {
  std::string_view content;
  uint64_t lines_before;  // number of lines in the source before them
  uint64_t bytes_read;    // of the source so far
};

// Visits all lines of a source in order, many at a time, until `visit` returns false. Errors of for_each_part().
void for_each_lines(const TextSource& source, const std::function<bool(const TextLines& lines)>& visit);

// `text`, part of a source that begins at byte `begin` and is followed by the byte `next` (0 at the end), checked and
// with CR LF replaced by LF, in `scratch` if there is any. Errors of check_utf8(). Returns bytes (Encoding::kBytes) as
// they are.
std::string_view clean_text(const TextSource& source, std::string_view text, uint64_t begin, char next,
                            std::string& scratch);

// The limit for one line of a JSON Lines file that is compressed or converted, because it must fit into memory: a
// small file can decompress to a line of any length.
inline constexpr size_t kMaxLineBytes = size_t{64} << 20;

// Error if a line that began at byte `begin` has this many bytes or more.
void check_line_length(const TextSource& source, uint64_t begin, size_t bytes);

}  // namespace quern::data
