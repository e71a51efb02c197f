// Unicode's normalisation form C: characters composed where possible, combining marks in canonical order.
#pragma once

#include <string>
#include <string_view>

namespace quern::data {

// `text` in NFC, in `scratch` if it differs, otherwise `text` itself. Bytes that are not UTF-8 are kept, and the text
// on each side of them is normalised on its own.
//
// Text without characters that may change is only scanned, at about the speed of memory; otherwise only the characters
// around those are normalised. Takes O(n log n) for n bytes of any text. The version of Unicode is 9, that of Hugging
// Face `tokenizers`, so that ids are the same: newer combining marks stay where they are.
std::string_view to_nfc(std::string_view text, std::string& scratch);

}  // namespace quern::data
