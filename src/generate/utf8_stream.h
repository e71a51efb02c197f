// Bytes in any pieces to text in whole characters: a token may end in the middle of a character.
#pragma once

#include <string>
#include <string_view>

namespace quern {

// What feed() returned so far, with finish() at the end, is valid UTF-8 and does not depend on how the bytes were cut.
// Bytes that cannot be part of a character become U+FFFD, one for each longest piece that could have begun one, which
// is what the Unicode standard recommends.
class Utf8Stream {
 public:
  // The characters that are complete with these bytes; what may still become one, at most 3 bytes, is kept.
  std::string feed(std::string_view bytes);

  // The end: what is kept was never completed. Starts afresh.
  std::string finish();

 private:
  std::string saved_;
};

}  // namespace quern
