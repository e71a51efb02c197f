// The pre-tokenizers as PCRE2 executes their regular expressions: the twin of the scanners.
#pragma once

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "data/tokenizer_parts.h"

namespace quern::data::test {

// The matches of a regular expression, anchored one after the other, in valid UTF-8. White space must be spelled
// [[S]] in the pattern, because PCRE2's \s has U+180E in addition.
class Expression {
 public:
  explicit Expression(std::string pattern) {
    constexpr std::string_view kSpace = "\\x{9}-\\x{d}\\x{85}\\p{Z}";
    for (size_t at; (at = pattern.find("[[S]]")) != std::string::npos;) pattern.replace(at, 5, kSpace);
    int error = 0;
    PCRE2_SIZE offset = 0;
    code_.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                              PCRE2_UTF | PCRE2_UCP | PCRE2_ANCHORED, &error, &offset, nullptr));
    if (code_ == nullptr) throw Error("[test] PCRE2 does not accept {} at {}", pattern, offset);
    match_.reset(pcre2_match_data_create_from_pattern(code_.get(), nullptr));
  }

  // The length of the match at the start of `text`; 0 if there is none.
  size_t match(std::string_view text) const {
    const int found =
        pcre2_match(code_.get(), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), 0, 0, match_.get(), nullptr);
    return found < 1 ? 0 : pcre2_get_ovector_pointer(match_.get())[1];
  }

 private:
  struct Free {
    void operator()(pcre2_code* code) const { pcre2_code_free(code); }
    void operator()(pcre2_match_data* match) const { pcre2_match_data_free(match); }
  };
  std::unique_ptr<pcre2_code, Free> code_;
  std::unique_ptr<pcre2_match_data, Free> match_;
};

inline void append_matches(const Expression& expression, std::string_view text, std::vector<std::string>& pieces) {
  while (!text.empty()) {
    const size_t length = expression.match(text);
    if (length == 0) throw Error("[test] no match at {}", text);
    pieces.emplace_back(text.substr(0, length));
    text.remove_prefix(length);
  }
}

// The pieces of valid UTF-8.
inline std::vector<std::string> reference_pieces(PretokenizerKind kind, std::string_view text) {
  static const Expression gpt2(
      "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^[[S]]\\p{L}\\p{N}]+|[[[S]]]+(?![^[[S]]])|[[[S]]]+");
  static const std::string before = "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|";
  static const std::string after = "| ?[^[[S]]\\p{L}\\p{N}]+[\\r\\n]*|[[[S]]]*[\\r\\n]+|[[[S]]]+(?![^[[S]]])|[[[S]]]+";
  static const Expression llama3(before + "\\p{N}{1,3}" + after);
  static const Expression qwen2(before + "\\p{N}" + after);
  static const Expression digit("\\p{N}");
  static const Expression no_digits("\\P{N}+");
  std::vector<std::string> pieces;
  if (kind == PretokenizerKind::kGpt2) append_matches(gpt2, text, pieces);
  if (kind == PretokenizerKind::kLlama3) append_matches(llama3, text, pieces);
  if (kind == PretokenizerKind::kQwen2) append_matches(qwen2, text, pieces);
  if (kind != PretokenizerKind::kDigitsGpt2) return pieces;
  while (!text.empty()) {
    const size_t length = digit.match(text);
    const size_t stretch = length > 0 ? length : no_digits.match(text);
    if (length > 0) {
      pieces.emplace_back(text.substr(0, length));
    } else {
      append_matches(gpt2, text.substr(0, stretch), pieces);
    }
    text.remove_prefix(stretch);
  }
  return pieces;
}

}  // namespace quern::data::test
