// The tokens of a piece of text.
#pragma once

#include <cstdint>
#include <vector>

#include "data/text_pieces.h"
#include "data/tokenizer.h"

namespace quern::data {

// Sets `tokens` to the tokens of a piece, with the begin-of-text token, if there is one, before every document,
// and the end-of-text token after it. Returns
// the number of bytes of text. Throws the errors of TextPieces::visit(), and Error with file and position for text that
// the tokenizer rejects. Thread-safe.
uint64_t tokens_of_piece(const TextPieces::Raw& piece, const Tokenizer& tokenizer, std::vector<int32_t>& tokens);

}  // namespace quern::data
