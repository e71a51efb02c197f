// Character encodings of text files, and their conversion to UTF-8.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "data/byte_reader.h"

namespace quern::data {

// What the user says about text files. kUtf8 also reads UTF-16 files that start with a byte order mark. kBytes reads
// any bytes as they are: nothing is checked, converted or removed.
enum class Encoding : uint8_t { kUtf8, kUtf16, kLatin1, kWindows1252, kBytes };

// What a file is.
struct TextForm {
  enum class Kind : uint8_t { kUtf8, kUtf16Le, kUtf16Be, kLatin1, kWindows1252, kBytes };
  Kind kind = Kind::kUtf8;
  uint32_t mark = 0;  // length of the byte order mark in bytes

  bool is_converted() const { return kind != Kind::kUtf8 && kind != Kind::kBytes; }
};

// UTF-8, UTF-16, Latin-1, ...: for messages.
std::string_view name_of(TextForm::Kind kind);

// Decides by the file's first bytes. UTF-16 without a byte order mark is taken as little endian. Error, with what to do
// instead, if they are not in the encoding that was named, or not text. `name` is the file in messages; `is_all` says
// that `head` is the whole file.
TextForm find_form(std::string_view head, bool is_all, Encoding encoding, std::string_view name);

// The text in UTF-8, without the byte order mark. Only for forms that are converted. read() throws an Error with file
// and position for bytes that are not in the encoding.
std::unique_ptr<ByteReader> to_utf8(const TextForm& form, std::unique_ptr<ByteReader> bytes, std::string name);

// Error with file, position and what to do unless `text`, which starts at byte `begin` of the file, is UTF-8 without
// zero bytes. A character that is incomplete at the end is an error unless `may_continue`.
void check_utf8(std::string_view text, std::string_view name, uint64_t begin, bool may_continue = false);

// `text` with every CR LF replaced by LF, in `scratch` if there is any. `next` is the byte after the text, or 0.
std::string_view without_carriage_returns(std::string_view text, char next, std::string& scratch);

}  // namespace quern::data
