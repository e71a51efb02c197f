// What follows an operand: attributes, subscripts, calls, filters and tests.
#include <string>

#include "chat/jinja_expression_parser.h"

namespace quern::chat {

void TokenStream::fail_expected(std::string_view what) const {
  const Token& token = current();
  if (token.kind == TokenKind::kEnd) budget_.fail("expected {}, found the end of the template", what);
  if (token.kind == TokenKind::kData) budget_.fail("expected {}, found text", what);
  budget_.fail("expected {}, found {}", what, in_quotes(token.text));
}

ExpressionPtr ExpressionParser::parse_postfix(ExpressionPtr object) {
  while (true) {
    if (tokens_.is_operator(".")) {
      object = parse_attribute(std::move(object));
    } else if (tokens_.is_operator("[")) {
      object = parse_subscript(std::move(object));
    } else if (tokens_.is_operator("(")) {
      object = parse_call(std::move(object));
    } else {
      return object;
    }
  }
}

ExpressionPtr ExpressionParser::parse_attribute(ExpressionPtr object) {
  const int line = tokens_.line();
  tokens_.expect_operator(".");
  if (tokens_.is(TokenKind::kInteger)) return make<Subscript>(line, std::move(object), parse_number());
  const Token name = tokens_.expect(TokenKind::kName, "the name of an attribute");
  return make<Attribute>(line, std::move(object), std::string(name.text));
}

ExpressionPtr ExpressionParser::parse_subscript(ExpressionPtr object) {
  const int line = tokens_.line();
  tokens_.expect_operator("[");
  ExpressionPtr first = tokens_.is_operator(":") ? nullptr : parse();
  if (!tokens_.is_operator(":")) {
    tokens_.expect_operator("]");
    return make<Subscript>(line, std::move(object), std::move(first));
  }
  std::vector<ExpressionPtr> parts;
  parts.push_back(std::move(first));
  while (parts.size() < 3 && tokens_.take_operator(":")) {
    const bool is_absent = tokens_.is_operator(":") || tokens_.is_operator("]");
    parts.push_back(is_absent ? nullptr : parse());
  }
  parts.resize(3);
  tokens_.expect_operator("]");
  return make<Slice>(line, std::move(object), std::move(parts));
}

ExpressionPtr ExpressionParser::parse_call(ExpressionPtr callee) {
  const int line = tokens_.line();
  return make<Call>(line, std::move(callee), parse_arguments());
}

ArgumentList ExpressionParser::parse_arguments() {
  ArgumentList arguments;
  tokens_.expect_operator("(");
  while (!tokens_.is_operator(")")) {
    parse_argument(arguments);
    if (!tokens_.is_operator(")")) tokens_.expect_operator(",");
  }
  tokens_.expect_operator(")");
  return arguments;
}

void ExpressionParser::parse_argument(ArgumentList& arguments) {
  if (tokens_.is_operator("*") || tokens_.is_operator("**")) {
    tokens_.budget().fail("arguments with '{}' are not supported", tokens_.current().text);
  }
  const Token& next = tokens_.next();
  if (tokens_.is(TokenKind::kName) && next.kind == TokenKind::kOperator && next.text == "=") {
    std::string name(tokens_.take().text);
    tokens_.take();
    arguments.keywords.emplace_back(std::move(name), parse());
  } else if (!arguments.keywords.empty()) {
    tokens_.fail_expected("an argument with a name");
  } else {
    arguments.positional.push_back(parse());
  }
}

ExpressionPtr ExpressionParser::parse_filters_and_tests(ExpressionPtr operand) {
  while (true) {
    if (tokens_.take_operator("|")) {
      operand = parse_filter(std::move(operand));
    } else if (tokens_.take_name("is")) {
      operand = parse_test(std::move(operand));
    } else if (tokens_.is_operator("(")) {
      operand = parse_call(std::move(operand));
    } else {
      return operand;
    }
  }
}

std::unique_ptr<const FilterCall> ExpressionParser::parse_filter(ExpressionPtr input) {
  const Token name = tokens_.expect(TokenKind::kName, "the name of a filter");
  const Filter filter = find_filter(name.text);
  if (!filter) tokens_.budget().fail("the filter '{}' is not supported", name.text);
  ArgumentList arguments = tokens_.is_operator("(") ? parse_arguments() : ArgumentList();
  return make<FilterCall>(name.line, std::move(input), filter, std::move(arguments));
}

ExpressionPtr ExpressionParser::parse_test(ExpressionPtr subject) {
  const bool is_negated = tokens_.take_name("not");
  const Token name = tokens_.expect(TokenKind::kName, "the name of a test");
  const Test test = find_test(name.text);
  if (!test) tokens_.budget().fail("the test '{}' is not supported", name.text);
  ExpressionPtr result = make<TestCall>(name.line, std::move(subject), test, parse_test_arguments());
  return is_negated ? make<Unary>(name.line, Unary::Kind::kNot, std::move(result)) : std::move(result);
}

// A test takes its argument in parentheses or right behind its name: x is divisibleby 3.
ArgumentList ExpressionParser::parse_test_arguments() {
  if (tokens_.is_operator("(")) return parse_arguments();
  const bool is_operator = tokens_.is_any_name({"and", "or", "else", "if", "in", "not", "is"});
  const bool is_operand = tokens_.is(TokenKind::kName) || tokens_.is(TokenKind::kString) ||
                          tokens_.is(TokenKind::kInteger) || tokens_.is(TokenKind::kFloat) ||
                          tokens_.is_operator("[") || tokens_.is_operator("{");
  ArgumentList arguments;
  if (is_operand && !is_operator) arguments.positional.push_back(parse_postfix(parse_primary()));
  return arguments;
}

}  // namespace quern::chat
