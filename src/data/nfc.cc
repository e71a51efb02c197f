#include "data/nfc.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "core/error.h"
#include "data/unicode_classes.h"
#include "data/utf8.h"

namespace quern::data {
namespace {

constexpr unsigned char kFirstUnstableByte = 0xCC;  // U+0300, the first character that may change, is CC 80

// The first byte at or after `at` from kFirstUnstableByte on.
size_t skip_stable_bytes(std::string_view text, size_t at) noexcept {
  // A byte is 0xC0 or more exactly if its two highest bits are set, so eight are tested at once. C0 to CB are tested
  // again below: rare next to the ASCII that this is for.
  uint64_t eight = 0;
  for (; text.size() - at >= sizeof eight; at += sizeof eight) {
    std::memcpy(&eight, text.data() + at, sizeof eight);
    if ((eight & eight << 1 & 0x8080808080808080u) != 0) break;
  }
  while (at < text.size() && static_cast<unsigned char>(text[at]) < kFirstUnstableByte) ++at;
  return at;
}

// The characters begin ... end - 1: the first is where normalisation starts, the end is where it must stop.
struct Segment {
  size_t begin;
  size_t end;
};

// The next unstable characters at or after `at`, with the character before them, which they may combine with. Empty at
// the end of the text if there are none.
Segment next_segment(std::string_view text, size_t at) noexcept {
  const UnicodeClasses& classes = UnicodeClasses::get();
  const size_t first = at;
  for (;;) {
    const size_t found = skip_stable_bytes(text, at);
    if (found == text.size()) return {found, found};
    const CodePoint next = read_code_point(text, found);
    if (next.length > 0 && classes.is_unstable(next.value)) {
      size_t begin = found;
      if (begin > first) {
        do --begin;
        while (begin > first && (static_cast<unsigned char>(text[begin]) & 0xC0) == 0x80);
        if (read_code_point(text, begin).length != found - begin) begin = found;  // bytes that are not UTF-8
      }
      size_t end = found;
      while (end < text.size()) {
        const CodePoint more = read_code_point(text, end);
        if (more.length == 0 || !classes.is_unstable(more.value)) break;
        end += more.length;
      }
      return {begin, end};
    }
    at = found + std::max<size_t>(next.length, 1);
  }
}

using CodePoints = std::vector<utf8proc_int32_t>;

void append_decomposed(std::string_view text, CodePoints& points) {
  std::array<utf8proc_int32_t, 32> parts{};  // no canonical decomposition has more than 4
  for (size_t at = 0; at < text.size();) {
    const CodePoint next = read_code_point(text, at);
    int boundary = 0;
    const utf8proc_ssize_t count =
        utf8proc_decompose_char(static_cast<utf8proc_int32_t>(next.value), parts.data(),
                                static_cast<utf8proc_ssize_t>(parts.size()), UTF8PROC_DECOMPOSE, &boundary);
    if (count < 0 || count > static_cast<utf8proc_ssize_t>(parts.size())) {
      throw Error("[tokenizer] utf8proc cannot decompose U+{:04X}", next.value);
    }
    points.insert(points.end(), parts.begin(), parts.begin() + count);
    at += next.length;
  }
}

// Marks that the table does not know are starters, whatever the version of the library.
int combining_class(utf8proc_int32_t point) {
  return UnicodeClasses::get().is_unstable(static_cast<uint32_t>(point)) ? utf8proc_get_property(point)->combining_class
                                                                         : 0;
}

// Marks between two starters by combining class. utf8proc's own ordering takes quadratic time for a long run of marks.
void order(CodePoints& points) {
  for (auto at = points.begin(); at != points.end();) {
    if (combining_class(*at) == 0) {
      ++at;
      continue;
    }
    const auto stop =
        std::find_if(at, points.end(), [](utf8proc_int32_t point) { return combining_class(point) == 0; });
    std::stable_sort(at, stop,
                     [](utf8proc_int32_t a, utf8proc_int32_t b) { return combining_class(a) < combining_class(b); });
    at = stop;
  }
}

void append_normalized(std::string_view text, CodePoints& points, std::string& out) {
  points.clear();
  append_decomposed(text, points);
  order(points);
  const utf8proc_ssize_t length =
      utf8proc_normalize_utf32(points.data(), static_cast<utf8proc_ssize_t>(points.size()),
                               static_cast<utf8proc_option_t>(UTF8PROC_COMPOSE | UTF8PROC_STABLE));
  if (length < 0) throw Error("[tokenizer] utf8proc cannot compose text: {}", utf8proc_errmsg(length));
  for (utf8proc_ssize_t i = 0; i < length; ++i) append_utf8(static_cast<uint32_t>(points[static_cast<size_t>(i)]), out);
}

}  // namespace

std::string_view to_nfc(std::string_view text, std::string& scratch) {
  Segment segment = next_segment(text, 0);
  if (segment.begin == text.size()) return text;
  scratch.clear();
  scratch.reserve(text.size());
  CodePoints points;
  size_t done = 0;
  while (segment.begin < text.size()) {
    scratch += text.substr(done, segment.begin - done);
    append_normalized(text.substr(segment.begin, segment.end - segment.begin), points, scratch);
    done = segment.end;
    segment = next_segment(text, done);
  }
  scratch += text.substr(done);
  return scratch;
}

}  // namespace quern::data
