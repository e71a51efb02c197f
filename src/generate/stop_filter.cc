#include "generate/stop_filter.h"

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "core/text.h"

namespace quern {

void check_stop(std::span<const std::string> stop) {
  if (stop.size() > kMaxStopStrings) {
    throw Error("[generate] stop: expected at most {} strings, found {}", kMaxStopStrings, stop.size());
  }
  for (const std::string& text : stop) {
    if (text.empty()) throw Error("[generate] stop: expected at least one character, found an empty string");
    if (text.size() > kMaxStopBytes) {
      throw Error("[generate] stop: expected at most {} bytes, found {}", kMaxStopBytes, text.size());
    }
    if (!is_utf8(text)) throw Error("[generate] stop: expected UTF-8, found {}", in_quotes(text));
  }
}

StopFilter::Pattern::Pattern(std::string_view stop) : text(stop), border(stop.size() + 1) {
  for (size_t n = 2, match = 0; n <= text.size(); ++n) {
    while (match > 0 && text[n - 1] != text[match]) match = border[match];
    if (text[n - 1] == text[match]) ++match;
    border[n] = match;
  }
}

void StopFilter::Pattern::advance(char byte) {
  while (matched > 0 && byte != text[matched]) matched = border[matched];
  if (byte == text[matched]) ++matched;
}

StopFilter::StopFilter(std::span<const std::string> stop) {
  check_stop(stop);
  for (const std::string& text : stop) patterns_.emplace_back(text);
}

size_t StopFilter::longest_match() const {
  size_t longest = 0;
  for (const Pattern& pattern : patterns_) longest = std::max(longest, pattern.matched);
  return longest;
}

size_t StopFilter::longest_complete() const {
  size_t longest = 0;
  for (const Pattern& pattern : patterns_) {
    if (pattern.matched == pattern.text.size()) longest = std::max(longest, pattern.matched);
  }
  return longest;
}

std::string StopFilter::feed(std::string_view text) {
  if (stopped_) return {};
  for (const char byte : text) {
    retained_ += byte;
    for (Pattern& pattern : patterns_) pattern.advance(byte);
    if (const size_t found = longest_complete(); found > 0) {
      stopped_ = true;
      retained_.resize(retained_.size() - found);
      return std::exchange(retained_, {});
    }
  }
  std::string certain = retained_.substr(0, retained_.size() - longest_match());
  retained_.erase(0, certain.size());
  return certain;
}

std::string StopFilter::finish() { return std::exchange(retained_, {}); }

}  // namespace quern
