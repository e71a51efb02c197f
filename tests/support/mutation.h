// Damaged copies of good input, for parsers: the same ones every time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace quern::test {

// Each call returns one of the `good` inputs with one to four damages: bytes replaced, flipped, inserted, removed,
// repeated or exchanged with a piece of another place, a tail cut off, or a word of the format put anywhere.
class Mutator {
 public:
  Mutator(std::vector<std::string> good, std::vector<std::string> words, unsigned seed)
      : good_(std::move(good)), words_(std::move(words)), generator_(seed) {}

  std::string next() {
    std::string text = good_[below(good_.size())];
    for (size_t damages = 1 + below(4); damages > 0; --damages) damage(text);
    return text;
  }

 private:
  size_t below(size_t limit) { return limit == 0 ? 0 : generator_() % limit; }

  void damage(std::string& text) {
    const size_t at = below(text.size() + 1);
    const size_t length = below(16);
    switch (generator_() % 8) {
      case 0:
        if (at < text.size()) text[at] = static_cast<char>(generator_());
        break;
      case 1:
        if (at < text.size()) text[at] = static_cast<char>(text[at] ^ (1 << below(8)));
        break;
      case 2:
        text.insert(at, 1, static_cast<char>(generator_()));
        break;
      case 3:
        text.erase(at, length);
        break;
      case 4:
        text.insert(at, text.substr(below(text.size() + 1), length));
        break;
      case 5:
        text.replace(at, length, text.substr(below(text.size() + 1), length));
        break;
      case 6:
        text.resize(at);
        break;
      default:
        text.replace(at, below(8), words_[below(words_.size())]);
    }
  }

  std::vector<std::string> good_;
  std::vector<std::string> words_;
  std::mt19937 generator_;
};

}  // namespace quern::test
