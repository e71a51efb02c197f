#include "data/text_tokens.h"

#include "core/error.h"

namespace quern::data {

uint64_t tokens_of_piece(const TextPieces::Raw& piece, const Tokenizer& tokenizer, std::vector<int32_t>& tokens) {
  const std::optional<int32_t> begin = tokenizer.begin_of_text();
  const std::optional<int32_t> end = tokenizer.end_of_text();
  uint64_t bytes = 0;
  tokens.clear();
  TextPieces::visit(piece, [&](const TextPieces::Span& span) {
    if (begin && span.starts_document) tokens.push_back(*begin);
    try {
      tokenizer.encode_part_to(span.text, span.starts_document, tokens);
    } catch (const Error& error) {  // from a tokenizer, which does not know file and position
      throw Error("[data] {}: after byte {}: {}", span.source, span.begin, error.what());
    }
    if (end && span.ends_document) tokens.push_back(*end);
    bytes += span.text.size();
  });
  return bytes;
}

}  // namespace quern::data
