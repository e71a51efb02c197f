// Shared by the tests of tokenizers.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "data/bpe_trainer.h"

namespace quern::data::test {

// Something of everything: contractions, numbers, runs of white space, scripts, emoji, controls.
inline const std::vector<std::string>& hard_texts() {
  static const std::vector<std::string> texts = {
      "",
      " ",
      "Hello, world!",
      "I'll say you're right; he's 'tis don't we've I'd I'm",
      "a  b   c\n\n  d\t\te \r\n f  ",
      "3.14 1,000,000 x86_64 \u00bd\u00b2",
      "na\u00efve caf\u00e9 e\u0301 \u0412\u0441\u0435 \u4e2d\u6587\u6ca1\u6709\u7a7a\u683c\u3002",
      "\U0001f600\U0001f468\u200d\U0001f469 \u2764\ufe0f \u00a0\u3000\u180e\ufeff",
      std::string("nul\0\x01\x7f", 6),
      "\xff\xfe invalid \xc3( \xe2\x82 \xed\xa0\x80 \xf5\x80\x80\x80 end\xc3",
  };
  return texts;
}

inline std::string random_bytes(size_t n, unsigned seed) {
  std::mt19937 generator(seed);
  std::string bytes(n, '\0');
  for (char& byte : bytes) byte = static_cast<char>(static_cast<unsigned char>(generator() & 0xFF));
  return bytes;
}

// Words of a small alphabet, some of them often: pairs overlap and counts tie.
inline std::string random_words(size_t words, std::string_view letters, unsigned seed) {
  std::mt19937 generator(seed);
  std::string text;
  for (size_t i = 0; i < words; ++i) {
    const size_t length = 1 + generator() % 9;
    for (size_t k = 0; k < length; ++k) text += letters[generator() % letters.size()];
    text += generator() % 8 == 0 ? "\n" : " ";
  }
  return text;
}

inline std::unique_ptr<BpeTokenizer> trained(std::string_view text, const BpeTrainerOptions& options) {
  BpeTrainer trainer;
  trainer.add(text);
  return trainer.train(options);
}

// The message of the Error that `body` throws.
template <typename Body>
std::string error_of(Body body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace quern::data::test
