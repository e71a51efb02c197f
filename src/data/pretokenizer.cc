#include "data/pretokenizer.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <array>
#include <new>

#include "core/error.h"
#include "data/utf8.h"

namespace quern::data {
namespace {

// \s is spelled out: PCRE2 counts U+180E as white space, unlike Unicode since version 6.3 and Hugging Face.
#define QUERN_SPACE "\\x{9}-\\x{d}\\x{85}\\p{Z}"
constexpr std::string_view kPattern = "'(?:[stmd]|re|ve|ll)| ?\\p{L}+| ?\\p{N}+| ?[^\\p{L}\\p{N}" QUERN_SPACE
                                      "]+"
                                      "|[" QUERN_SPACE "]+(?![^" QUERN_SPACE "])|[" QUERN_SPACE "]+";
#undef QUERN_SPACE

std::string message_of(int code) {
  std::array<PCRE2_UCHAR, 256> text{};
  pcre2_get_error_message(code, text.data(), text.size());
  return reinterpret_cast<const char*>(text.data());
}

// Anchored, because pieces of valid text are contiguous.
pcre2_code* compile() {
  int error = 0;
  PCRE2_SIZE offset = 0;
  pcre2_code* code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(kPattern.data()), kPattern.size(),
                                   PCRE2_UTF | PCRE2_UCP | PCRE2_ANCHORED, &error, &offset, nullptr);
  if (code == nullptr)
    throw Error("[tokenizer] PCRE2 does not accept the pattern at {}: {}", offset, message_of(error));
  // If generating machine code at run time is not allowed, pcre2_match() interprets the pattern: slower, same pieces.
  (void)pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);
  return code;
}

const pcre2_code* compiled() {
  static const std::unique_ptr<pcre2_code, decltype(&pcre2_code_free)> code(compile(), pcre2_code_free);
  return code.get();
}

size_t invalid_length(std::string_view text) {
  size_t at = 0;
  while (at < text.size() && read_code_point(text, at).length == 0) ++at;
  return at;
}

}  // namespace

void Pretokenizer::FreeMatch::operator()(pcre2_real_match_data_8* match) const noexcept {
  pcre2_match_data_free(match);
}

Pretokenizer::Pretokenizer() : match_(pcre2_match_data_create_from_pattern(compiled(), nullptr)) {
  if (match_ == nullptr) throw std::bad_alloc();
}

void Pretokenizer::start(std::string_view text) noexcept {
  rest_ = text;
  valid_ = 0;
}

bool Pretokenizer::next(std::string_view& piece) {
  if (rest_.empty()) return false;
  if (valid_ == 0) {
    valid_ = valid_utf8_length(rest_);
    if (valid_ == 0) {
      piece = take(invalid_length(rest_));
      return true;
    }
  }
  const size_t length = match();
  valid_ -= length;
  piece = take(length);
  return true;
}

std::string_view Pretokenizer::take(size_t length) noexcept {
  const std::string_view piece = rest_.substr(0, length);
  rest_.remove_prefix(length);
  return piece;
}

size_t Pretokenizer::match() const {
  // next() checks the text once; the check of PCRE2 would read all remaining text for every piece.
  const int found = pcre2_match(compiled(), reinterpret_cast<PCRE2_SPTR>(rest_.data()), valid_, 0, PCRE2_NO_UTF_CHECK,
                                match_.get(), nullptr);
  if (found < 1) throw Error("[tokenizer] PCRE2 gave up with {} bytes to go: {}", valid_, message_of(found));
  return pcre2_get_ovector_pointer(match_.get())[1];
}

}  // namespace quern::data
