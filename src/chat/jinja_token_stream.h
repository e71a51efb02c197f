// The tokens of a template, one after the other, with the checks that every rule of the grammar needs.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "chat/jinja_lexer.h"

namespace quern::chat {

class TokenStream {
 public:
  TokenStream(std::vector<Token> tokens, Budget& budget) : tokens_(std::move(tokens)), budget_(budget) {
    budget_.at_line(current().line);
  }

  const Token& current() const { return tokens_[at_]; }
  const Token& next() const { return tokens_[at_ + 1 < tokens_.size() ? at_ + 1 : at_]; }
  int line() const { return current().line; }
  Budget& budget() const { return budget_; }

  bool is(TokenKind kind) const { return current().kind == kind; }
  bool is_operator(std::string_view text) const { return is(TokenKind::kOperator) && current().text == text; }
  bool is_name(std::string_view text) const { return is(TokenKind::kName) && current().text == text; }
  bool is_any_name(std::initializer_list<std::string_view> names) const {
    for (const std::string_view name : names) {
      if (is_name(name)) return true;
    }
    return false;
  }

  Token take() {
    const Token token = current();
    if (at_ + 1 < tokens_.size()) ++at_;
    budget_.at_line(line());
    return token;
  }

  bool take_operator(std::string_view text) { return is_operator(text) && (take(), true); }
  bool take_name(std::string_view text) { return is_name(text) && (take(), true); }

  void expect_operator(std::string_view text) {
    if (!take_operator(text)) fail_expected(fmt::format("'{}'", text));
  }

  void expect_name(std::string_view text) {
    if (!take_name(text)) fail_expected(fmt::format("'{}'", text));
  }

  Token expect(TokenKind kind, std::string_view what) {
    if (!is(kind)) fail_expected(what);
    return take();
  }

  // "expected WHAT, found ..."
  [[noreturn]] void fail_expected(std::string_view what) const;

 private:
  std::vector<Token> tokens_;
  size_t at_ = 0;
  Budget& budget_;
};

}  // namespace quern::chat
