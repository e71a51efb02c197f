// The content of an answer, without what the template writes around it.
#pragma once

#include <string>
#include <string_view>

namespace quern {

// Removes `before` from the beginning of a text that arrives in pieces, if the text begins with it: some templates have
// a space between the generation prompt and the content, which the model writes and the template would write again.
class AnswerText {
 public:
  explicit AnswerText(std::string_view before) : before_(before) {}

  // What this piece adds to the content; empty as long as it may be part of `before`.
  std::string feed(std::string_view piece) {
    if (decided_) return std::string(piece);
    held_ += piece;
    if (std::string_view(before_).starts_with(held_) && held_ != before_) return {};
    decided_ = true;
    return held_.substr(held_.starts_with(before_) ? before_.size() : 0);
  }

  // Ends the text: what was held back.
  std::string finish() { return decided_ ? std::string() : held_; }

 private:
  std::string before_, held_;
  bool decided_ = false;
};

}  // namespace quern
