// Turns bytes in arbitrary pieces into text of complete characters: a token may end in the middle of a character.
#pragma once

#include <string>
#include <string_view>

namespace quern {

// The concatenated results of feed() and the final finish() are valid UTF-8 and do not depend on how the bytes were
// split. Bytes that cannot be part of a character become U+FFFD, one for each maximal prefix of a character, as the
// Unicode standard recommends.
class Utf8Stream {
 public:
  // Returns the characters that these bytes complete; an incomplete character, at most 3 bytes, is retained.
  std::string feed(std::string_view bytes);

  // Ends the stream: a retained character was never completed. Resets the object.
  std::string finish();

 private:
  std::string saved_;
};

}  // namespace quern
