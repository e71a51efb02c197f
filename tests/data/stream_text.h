// Texts for tests of streams: long enough for several pieces, and awkward where pieces meet.
#pragma once

#include <random>
#include <string>

#include "data/text_pieces.h"

namespace quern::data::test {

// Words of random length, some of them long, beyond ASCII, or with runs of white space between.
inline std::string words(size_t bytes, unsigned seed = 1) {
  std::mt19937 random(seed);
  std::string text;
  while (text.size() < bytes) {
    const size_t length = random() % 200 == 0 ? 300 : 1 + random() % 9;
    for (size_t i = 0; i < length; ++i) {
      random() % 20 == 0 ? text += "\xC3\xA9" : text += static_cast<char>('a' + random() % 26);
    }
    constexpr const char* kBetween[] = {" ", " ", " ", "  ", "\n", "\n\n", "'s ", ", ", " \n\t ", "\xC2\xA0"};
    text += kBetween[random() % 10];
  }
  return text;
}

inline std::string json_line(std::string_view text) {
  std::string line = "{\"n\": 1, \"text\": \"";
  for (const char c : text) {
    if (c == '\n') {
      line += "\\n";
    } else if (c == '\t') {
      line += "\\t";
    } else {
      line += c;
    }
  }
  return line + "\"}\n";
}

inline TextSources in_memory(std::string text) { return {std::make_shared<TextSource>("memory", std::move(text))}; }

}  // namespace quern::data::test
