#include "data/encoding.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "core/error.h"
#include "data/compressed_reader.h"
#include "data/utf8.h"

namespace quern::data {
namespace {

using Kind = TextForm::Kind;

constexpr std::string_view kUtf8Mark = "\xEF\xBB\xBF", kUtf16LeMark = "\xFF\xFE", kUtf16BeMark = "\xFE\xFF";

unsigned byte_at(std::string_view text, size_t at) { return static_cast<unsigned char>(text[at]); }

// A file name as a word for the shell.
std::string quoted(std::string_view name) {
  const auto is_plain = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
           std::string_view("/._+-").find(c) != std::string_view::npos;
  };
  if (std::all_of(name.begin(), name.end(), is_plain)) return std::string(name);
  std::string word = "'";
  for (const char c : name) c == '\'' ? word += "'\\''" : word += c;
  return word + "'";
}

// The shell command that converts the file.
std::string command(std::string_view from, std::string_view name) {
  const Compression compression = compression_of(name);
  if (compression == Compression::kNone) return fmt::format("`iconv -f {} -t UTF-8 {} > NEW`", from, quoted(name));
  const char* tool = compression == Compression::kGzip ? "gzip" : "zstd";
  return fmt::format("`{0} -dc {1} | iconv -f {2} -t UTF-8 | {0} > NEW`", tool, quoted(name), from);
}

// 0x80 to 0x9F are control characters in Latin-1, which no text contains, and quotation marks and dashes in
// Windows-1252.
[[noreturn]] void fail_invalid(std::string_view text, size_t at, std::string_view name, uint64_t begin) {
  const unsigned found = byte_at(text, at);
  const bool windows = std::any_of(text.begin() + static_cast<ptrdiff_t>(at), text.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte >= 0x80 && byte < 0xA0;
  });
  const size_t from = at - std::min<size_t>(at, 12);
  throw Error(
      "[data] {}: byte {}: expected UTF-8, found byte 0x{:02x} in {}; if the text is {}, set data.encoding={}, or "
      "convert the file: {}",
      name, begin + at, found, in_quotes(text.substr(from, at - from + 12)), windows ? "Windows-1252" : "Latin-1",
      windows ? "windows-1252" : "latin-1", command(windows ? "WINDOWS-1252" : "LATIN1", name));
}

// Text in a Latin script has a zero in every other byte of UTF-16.
bool looks_like_utf16(std::string_view text, size_t at) {
  const std::string_view near = text.substr(at - std::min<size_t>(at, 1), 64);
  return near.size() >= 8 &&
         std::count(near.begin(), near.end(), '\0') * 5 >= static_cast<ptrdiff_t>(near.size()) * 2 &&
         near.find(std::string_view("\0\0", 2)) == std::string_view::npos;
}

[[noreturn]] void fail_zero(std::string_view text, size_t at, std::string_view name, uint64_t begin) {
  if (looks_like_utf16(text, at)) {
    throw Error(
        "[data] {}: byte {}: expected UTF-8, found byte 0x00, as in UTF-16; set data.encoding=utf-16, or convert the "
        "file: {}",
        name, begin + at, command("UTF-16LE", name));
  }
  throw Error(
      "[data] {}: byte {}: expected text, found byte 0x00: the file is binary; leave it out, or set "
      "data.encoding=bytes and --tokenizer byte to train on its bytes",
      name, begin + at);
}

void check_no_utf8_mark(std::string_view head, std::string_view wanted, std::string_view name) {
  if (!head.starts_with(kUtf8Mark) && !head.starts_with(kUtf16LeMark) && !head.starts_with(kUtf16BeMark)) return;
  throw Error("[data] {}: expected {}, as data.encoding says, found a byte order mark of {}; leave data.encoding=utf-8",
              name, wanted, head.starts_with(kUtf8Mark) ? "UTF-8" : "UTF-16");
}

// Read as Latin-1, UTF-8 would be two wrong characters for each one beyond ASCII.
void check_not_utf8(std::string_view head, bool is_all, std::string_view wanted, std::string_view name) {
  const auto is_ascii = [](char c) { return static_cast<unsigned char>(c) < 0x80; };
  const size_t first = static_cast<size_t>(std::find_if_not(head.begin(), head.end(), is_ascii) - head.begin());
  const size_t valid = valid_utf8_length(head);
  if (first == head.size() || (is_all ? valid < head.size() : valid + 4 < head.size())) return;
  throw Error("[data] {}: byte {}: expected {}, as data.encoding says, found UTF-8 ({}); leave data.encoding=utf-8",
              name, first, wanted, in_quotes(head.substr(first, 12)));
}

TextForm utf16_form(std::string_view head) {
  if (head.starts_with(kUtf16BeMark)) return {Kind::kUtf16Be, 2};
  return {Kind::kUtf16Le, head.starts_with(kUtf16LeMark) ? 2u : 0u};
}

TextForm utf8_form(std::string_view head, bool is_all, std::string_view name) {
  if (head.starts_with(std::string_view("\xFF\xFE\0\0", 4)) || head.starts_with(std::string_view("\0\0\xFE\xFF", 4))) {
    throw Error("[data] {}: expected UTF-8, found a byte order mark of UTF-32; convert the file: {}", name,
                command("UTF-32", name));
  }
  if (head.starts_with(kUtf16LeMark) || head.starts_with(kUtf16BeMark)) return utf16_form(head);
  const uint32_t mark = head.starts_with(kUtf8Mark) ? 3 : 0;
  check_utf8(head.substr(mark), name, mark, !is_all);
  return {Kind::kUtf8, mark};
}

}  // namespace

std::string_view name_of(Kind kind) {
  constexpr std::array<std::string_view, 6> kNames = {"UTF-8",   "UTF-16 (little endian)", "UTF-16 (big endian)",
                                                      "Latin-1", "Windows-1252",           "bytes"};
  return kNames[static_cast<size_t>(kind)];
}

TextForm find_form(std::string_view head, bool is_all, Encoding encoding, std::string_view name) {
  switch (encoding) {
    case Encoding::kUtf8:
      return utf8_form(head, is_all, name);
    case Encoding::kUtf16:
      return utf16_form(head);
    case Encoding::kLatin1:
    case Encoding::kWindows1252: {
      const TextForm form{encoding == Encoding::kLatin1 ? Kind::kLatin1 : Kind::kWindows1252, 0};
      check_no_utf8_mark(head, name_of(form.kind), name);
      check_not_utf8(head, is_all, name_of(form.kind), name);
      return form;
    }
    case Encoding::kBytes:
      return {Kind::kBytes, 0};
  }
  throw Error("[data] encoding: expected utf-8, utf-16, latin-1, windows-1252 or bytes");
}

void check_utf8(std::string_view text, std::string_view name, uint64_t begin, bool may_continue) {
  const size_t valid = valid_utf8_length(text);
  if (const size_t zero = text.substr(0, valid).find('\0'); zero != std::string_view::npos) {
    fail_zero(text, zero, name, begin);
  }
  if (valid == text.size()) return;
  constexpr size_t kLongest = 4;
  if (may_continue && text.size() - valid < kLongest && byte_at(text, valid) >= 0xC2) return;
  fail_invalid(text, valid, name, begin);
}

std::string_view without_carriage_returns(std::string_view text, char next, std::string& scratch) {
  const auto is_line_end = [&](size_t at) { return (at + 1 < text.size() ? text[at + 1] : next) == '\n'; };
  size_t at = text.find('\r');
  while (at != std::string_view::npos && !is_line_end(at)) at = text.find('\r', at + 1);
  if (at == std::string_view::npos) return text;
  scratch.clear();
  for (size_t begin = 0;;) {
    scratch.append(text, begin, at - begin);
    begin = at + 1;
    do at = text.find('\r', at + 1);
    while (at != std::string_view::npos && !is_line_end(at));
    if (at == std::string_view::npos) {
      scratch.append(text, begin);
      return scratch;
    }
  }
}

}  // namespace quern::data
