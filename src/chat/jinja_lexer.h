// Cuts a template into text, tags and the tokens inside of tags, and applies the rules for white space around tags.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "chat/jinja_budget.h"

namespace quern::chat {

enum class TokenKind : uint8_t {
  kData,  // text outside of tags
  kVariableBegin,
  kVariableEnd,
  kBlockBegin,
  kBlockEnd,
  kName,
  kString,  // with its quotes and escapes
  kInteger,
  kFloat,
  kOperator,
  kEnd
};

struct Token {
  TokenKind kind;
  std::string_view text;  // a part of the source
  int line;
};

// As Jinja2 reads a template: every kind of line end becomes \n, and one at the end of the template is dropped.
std::string normalize_source(std::string_view text);

// The tokens of a normalized source, which must be UTF-8 and outlive them; kEnd is the last. Fails on characters that
// start no token, and on tags, comments, texts and brackets that are not closed.
std::vector<Token> tokenize(std::string_view source, Budget& budget);

// The value of a kString token.
std::string decode_string(std::string_view literal, const Budget& budget);

}  // namespace quern::chat
