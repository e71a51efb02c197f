// Ends a text before the first of several stop strings.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace quern {

inline constexpr size_t kMaxStopStrings = 64;
inline constexpr size_t kMaxStopBytes = 1024;  // of one string

// Throws Error for more than kMaxStopStrings strings, and for one that is empty, too long, or not UTF-8: no generated
// text contains it.
void check_stop(std::span<const std::string> stop);

// The text arrives in pieces of complete characters. It ends before the occurrence of a stop string that is complete
// first, and of those that end with the same character, before the longest. The concatenated results therefore do not
// depend on how the text was split. What may be the beginning of a stop string is retained until that is decided.
//
// Linear in the text for each stop string (Knuth, Morris and Pratt).
class StopFilter {
 public:
  // Checks the strings.
  explicit StopFilter(std::span<const std::string> stop);

  // Returns what is certainly before any stop string; empty once stopped().
  std::string feed(std::string_view text);

  // Ends the text: returns what was retained.
  std::string finish();

  bool stopped() const { return stopped_; }  // whether a stop string was found

 private:
  struct Pattern {
    explicit Pattern(std::string_view stop);
    void advance(char byte);

    std::string text;
    std::vector<size_t> border;  // of each prefix: length of its longest proper prefix that it also ends with
    size_t matched = 0;          // length of the longest beginning of `text` that the text so far ends with
  };
  size_t longest_match() const;
  size_t longest_complete() const;

  std::vector<Pattern> patterns_;
  std::string retained_;
  bool stopped_ = false;
};

}  // namespace quern
