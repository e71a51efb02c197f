// The tokens of a piece of text.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/text_pieces.h"
#include "data/tokenizer.h"

namespace quern::data {

// `tokens` becomes the tokens of piece `index`; where the tokenizer has an end of text, it follows every document.
// Error as TextPieces::visit(), and for text that the tokenizer does not take, with file and place. Returns how many
// bytes of text they are. Any thread.
uint64_t tokens_of_piece(const TextPieces& pieces, const Tokenizer& tokenizer, uint64_t index, std::string& scratch,
                         std::vector<int32_t>& tokens);

}  // namespace quern::data
