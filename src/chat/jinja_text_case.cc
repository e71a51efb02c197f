// Upper and lower case, and which characters Python shows as they are.
#include <fmt/format.h>
#include <utf8proc.h>

#include <algorithm>

#include "chat/jinja_text.h"
#include "data/unicode_classes.h"
#include "data/utf8.h"

namespace quern::chat {
namespace {

using data::decode_valid;
using data::DecodedCharacter;

constexpr uint32_t kSharpS = 0xDF;

template <typename Body>
void for_each_character(std::string_view text, Body body) {
  for (size_t at = 0; at < text.size();) {
    const DecodedCharacter next = decode_valid(text.data() + at);
    body(next.value);
    at += next.length;
  }
}

utf8proc_category_t category(uint32_t c) noexcept { return utf8proc_category(static_cast<utf8proc_int32_t>(c)); }

bool has_case(uint32_t c) noexcept {
  const utf8proc_category_t found = category(c);
  return found == UTF8PROC_CATEGORY_LU || found == UTF8PROC_CATEGORY_LL || found == UTF8PROC_CATEGORY_LT;
}

void append_lower(uint32_t c, std::string& text) {
  data::append_utf8(static_cast<uint32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))), text);
}

void append_upper(uint32_t c, std::string& text) {
  if (c == kSharpS) text += "SS";
  if (c != kSharpS) data::append_utf8(static_cast<uint32_t>(utf8proc_toupper(static_cast<utf8proc_int32_t>(c))), text);
}

void append_title(uint32_t c, std::string& text) {
  if (c == kSharpS) text += "Ss";
  if (c != kSharpS) data::append_utf8(static_cast<uint32_t>(utf8proc_totitle(static_cast<utf8proc_int32_t>(c))), text);
}

template <typename Accepts>
bool all_characters(std::string_view text, Accepts accepts) noexcept {
  bool all = !text.empty();
  for_each_character(text, [&](uint32_t c) { all = all && accepts(c); });
  return all;
}

bool is_cased_as(std::string_view text, utf8proc_category_t wanted) noexcept {
  bool any = false;
  return all_characters(text,
                        [&](uint32_t c) {
                          any = any || category(c) == wanted;
                          return !has_case(c) || category(c) == wanted;
                        }) &&
         any;
}

// Space is the only separator that repr() does not escape.
bool is_printable(uint32_t c) noexcept {
  if (c == ' ') return true;
  const utf8proc_category_t found = category(c);
  return found != UTF8PROC_CATEGORY_CN && found < UTF8PROC_CATEGORY_ZS;
}

void append_quoted(uint32_t c, char quote, std::string& text) {
  if (c == static_cast<uint32_t>(quote) || c == '\\') {
    text += '\\';
    text += static_cast<char>(c);
  } else if (c == '\n' || c == '\r' || c == '\t') {
    text += c == '\n' ? "\\n" : c == '\r' ? "\\r" : "\\t";
  } else if (is_printable(c)) {
    data::append_utf8(c, text);
  } else {
    text += c < 0x100     ? fmt::format("\\x{:02x}", c)
            : c < 0x10000 ? fmt::format("\\u{:04x}", c)
                          : fmt::format("\\U{:08x}", c);
  }
}

}  // namespace

std::string upper(std::string_view text) {
  std::string result;
  for_each_character(text, [&](uint32_t c) { append_upper(c, result); });
  return result;
}

std::string lower(std::string_view text) {
  std::string result;
  for_each_character(text, [&](uint32_t c) { append_lower(c, result); });
  return result;
}

std::string capitalize(std::string_view text) {
  std::string result;
  bool first = true;
  for_each_character(text, [&](uint32_t c) {
    first ? append_title(c, result) : append_lower(c, result);
    first = false;
  });
  return result;
}

std::string title(std::string_view text) {
  std::string result;
  bool in_word = false;
  for_each_character(text, [&](uint32_t c) {
    in_word ? append_lower(c, result) : append_title(c, result);
    in_word = has_case(c);
  });
  return result;
}

bool is_upper(std::string_view text) noexcept { return is_cased_as(text, UTF8PROC_CATEGORY_LU); }
bool is_lower(std::string_view text) noexcept { return is_cased_as(text, UTF8PROC_CATEGORY_LL); }

bool is_alphabetic(std::string_view text) noexcept {
  return all_characters(
      text, [](uint32_t c) { return category(c) >= UTF8PROC_CATEGORY_LU && category(c) <= UTF8PROC_CATEGORY_LO; });
}

bool is_decimal(std::string_view text) noexcept {
  return all_characters(text, [](uint32_t c) { return category(c) == UTF8PROC_CATEGORY_ND; });
}

std::string repr_text(std::string_view text) {
  const bool has_single = text.find('\'') != std::string_view::npos;
  const char quote = has_single && text.find('"') == std::string_view::npos ? '"' : '\'';
  std::string result(1, quote);
  const auto is_plain = [](char c) { return c >= ' ' && c < 0x7F && c != '\'' && c != '"' && c != '\\'; };
  if (std::all_of(text.begin(), text.end(), is_plain)) return result.append(text) += quote;
  for_each_character(text, [&](uint32_t c) { append_quoted(c, quote, result); });
  return result + quote;
}

}  // namespace quern::chat
