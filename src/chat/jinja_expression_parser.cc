// The grammar, from the operators that bind loosest to those that bind tightest, is that of Jinja2:
//   a if b else c; or; and; not; == != < <= > >= in; + -; ~; * / // %; **; unary - +; . [] (); | and is.
#include "chat/jinja_expression_parser.h"

#include <charconv>
#include <string>

#include "core/error.h"

namespace quern::chat {
namespace {

constexpr std::string_view kReserved[] = {"and", "else", "if", "in", "is", "not", "or"};

bool is_reserved(std::string_view name) {
  return std::find(std::begin(kReserved), std::end(kReserved), name) != std::end(kReserved);
}

std::string without_underscores(std::string_view digits) {
  std::string text(digits);
  std::erase(text, '_');
  return text;
}

}  // namespace

ExpressionParser::Level::Level(ExpressionParser& parser) : parser_(parser) {
  if (++parser.level_ <= kMaxSyntaxDepth) return;
  --parser.level_;
  parser.fail_deep();
}

void ExpressionParser::fail_deep() const {
  tokens_.budget().fail("constructs are nested more than {} levels deep", kMaxSyntaxDepth);
}

ExpressionPtr ExpressionParser::parse() {
  const Level level(*this);
  const int line = tokens_.line();
  ExpressionPtr result = parse_or();
  while (tokens_.take_name("if")) {
    ExpressionPtr condition = parse_or();
    ExpressionPtr otherwise = tokens_.take_name("else") ? parse() : nullptr;
    result = make<Conditional>(line, std::move(condition), std::move(result), std::move(otherwise));
  }
  return result;
}

template <typename Parse>
ExpressionPtr ExpressionParser::tuple_of(Parse parse) {
  const int line = tokens_.line();
  ExpressionPtr first = parse();
  if (!tokens_.is_operator(",")) return first;
  std::vector<ExpressionPtr> items;
  items.push_back(std::move(first));
  while (tokens_.take_operator(",")) {
    if (tokens_.is(TokenKind::kVariableEnd) || tokens_.is(TokenKind::kBlockEnd) || tokens_.is_operator(")")) break;
    items.push_back(parse());
  }
  return make<ListLiteral>(line, SequenceKind::kTuple, std::move(items));
}

ExpressionPtr ExpressionParser::parse_tuple() {
  return tuple_of([this] { return parse(); });
}

ExpressionPtr ExpressionParser::parse_or_tuple() {
  return tuple_of([this] { return parse_or(); });
}

ExpressionPtr ExpressionParser::parse_or() {
  const int line = tokens_.line();
  ExpressionPtr first = parse_and();
  if (!tokens_.is_name("or")) return first;
  std::vector<ExpressionPtr> operands;
  operands.push_back(std::move(first));
  while (tokens_.take_name("or")) operands.push_back(parse_and());
  return make<Logical>(line, false, std::move(operands));
}

ExpressionPtr ExpressionParser::parse_and() {
  const int line = tokens_.line();
  ExpressionPtr first = parse_not();
  if (!tokens_.is_name("and")) return first;
  std::vector<ExpressionPtr> operands;
  operands.push_back(std::move(first));
  while (tokens_.take_name("and")) operands.push_back(parse_not());
  return make<Logical>(line, true, std::move(operands));
}

ExpressionPtr ExpressionParser::parse_not() {
  const int line = tokens_.line();
  if (!tokens_.take_name("not")) return parse_comparison();
  const Level level(*this);
  return make<Unary>(line, Unary::Kind::kNot, parse_not());
}

bool ExpressionParser::take_relation(Relation& relation) {
  constexpr std::pair<std::string_view, Relation> kRelations[] = {
      {"==", Relation::kEqual},  {"!=", Relation::kNotEqual},    {"<", Relation::kLess},
      {">", Relation::kGreater}, {"<=", Relation::kLessOrEqual}, {">=", Relation::kGreaterOrEqual}};
  for (const auto& [text, found] : kRelations) {
    if (tokens_.take_operator(text)) return relation = found, true;
  }
  if (tokens_.take_name("in")) return relation = Relation::kIn, true;
  if (!tokens_.is_name("not") || tokens_.next().kind != TokenKind::kName || tokens_.next().text != "in") return false;
  tokens_.take();
  tokens_.take();
  relation = Relation::kNotIn;
  return true;
}

ExpressionPtr ExpressionParser::parse_comparison() {
  const int line = tokens_.line();
  ExpressionPtr first = parse_sum();
  std::vector<Relation> relations;
  std::vector<ExpressionPtr> rest;
  for (Relation relation{}; take_relation(relation);) {
    relations.push_back(relation);
    rest.push_back(parse_sum());
  }
  if (rest.empty()) return first;
  return make<Comparison>(line, std::move(first), std::move(relations), std::move(rest));
}

ExpressionPtr ExpressionParser::parse_sum() {
  const int line = tokens_.line();
  ExpressionPtr left = parse_concatenation();
  while (tokens_.is_operator("+") || tokens_.is_operator("-")) {
    const Arithmetic operation = tokens_.take().text == "+" ? Arithmetic::kAdd : Arithmetic::kSubtract;
    left = make<Binary>(line, operation, std::move(left), parse_concatenation());
  }
  return left;
}

ExpressionPtr ExpressionParser::parse_concatenation() {
  const int line = tokens_.line();
  ExpressionPtr first = parse_product();
  if (!tokens_.is_operator("~")) return first;
  std::vector<ExpressionPtr> parts;
  parts.push_back(std::move(first));
  while (tokens_.take_operator("~")) parts.push_back(parse_product());
  return make<Concatenation>(line, std::move(parts));
}

ExpressionPtr ExpressionParser::parse_product() {
  constexpr std::pair<std::string_view, Arithmetic> kOperations[] = {{"*", Arithmetic::kMultiply},
                                                                     {"/", Arithmetic::kDivide},
                                                                     {"//", Arithmetic::kFloorDivide},
                                                                     {"%", Arithmetic::kModulo}};
  const int line = tokens_.line();
  ExpressionPtr left = parse_power();
  while (true) {
    const auto* found = std::find_if(std::begin(kOperations), std::end(kOperations),
                                     [this](const auto& one) { return tokens_.is_operator(one.first); });
    if (found == std::end(kOperations)) return left;
    tokens_.take();
    left = make<Binary>(line, found->second, std::move(left), parse_power());
  }
}

ExpressionPtr ExpressionParser::parse_power() {
  const int line = tokens_.line();
  ExpressionPtr left = parse_unary(true);
  while (tokens_.take_operator("**")) {
    left = make<Binary>(line, Arithmetic::kPower, std::move(left), parse_unary(true));
  }
  return left;
}

// A filter applies to the number with its sign: -1|abs is 1.
ExpressionPtr ExpressionParser::parse_unary(bool with_filters) {
  const Level level(*this);
  const int line = tokens_.line();
  ExpressionPtr result;
  if (tokens_.is_operator("-") || tokens_.is_operator("+")) {
    const Unary::Kind kind = tokens_.take().text == "-" ? Unary::Kind::kMinus : Unary::Kind::kPlus;
    result = make<Unary>(line, kind, parse_unary(false));
  } else {
    result = parse_primary();
  }
  result = parse_postfix(std::move(result));
  return with_filters ? parse_filters_and_tests(std::move(result)) : std::move(result);
}

ExpressionPtr ExpressionParser::parse_primary() {
  switch (tokens_.current().kind) {
    case TokenKind::kName:
      return parse_name();
    case TokenKind::kString:
      return parse_strings();
    case TokenKind::kInteger:
    case TokenKind::kFloat:
      return parse_number();
    default:
      if (tokens_.is_operator("(")) return parse_parentheses();
      if (tokens_.is_operator("[")) return parse_list();
      if (tokens_.is_operator("{")) return parse_dict();
      tokens_.fail_expected("an expression");
  }
}

ExpressionPtr ExpressionParser::parse_name() {
  if (is_reserved(tokens_.current().text)) tokens_.fail_expected("an expression");
  const auto [kind, name, line] = tokens_.take();
  if (name == "true" || name == "True") return make<Constant>(line, Value(true));
  if (name == "false" || name == "False") return make<Constant>(line, Value(false));
  if (name == "none" || name == "None") return make<Constant>(line, Value());
  if (macros_ > 0 && (name == "varargs" || name == "kwargs" || name == "caller")) {
    tokens_.budget().fail("'{}' of a macro is not supported", name);
  }
  return make<Name>(line, std::string(name));
}

ExpressionPtr ExpressionParser::parse_strings() {
  const int line = tokens_.line();
  std::string text;
  while (tokens_.is(TokenKind::kString)) text += decode_string(tokens_.take().text, tokens_.budget());
  return make<Constant>(line, Value(std::move(text)));
}

ExpressionPtr ExpressionParser::parse_number() {
  const auto [kind, text, line] = tokens_.take();
  const std::string digits = without_underscores(text);
  int64_t integer = 0;
  double number = 0;
  const char* end = digits.data() + digits.size();
  const bool is_integer = kind == TokenKind::kInteger;
  const auto result =
      is_integer ? std::from_chars(digits.data(), end, integer) : std::from_chars(digits.data(), end, number);
  if (result.ec != std::errc() || result.ptr != end)
    tokens_.budget().fail("the number {} is too large", in_quotes(text));
  if (is_integer && digits.size() > 1 && digits[0] == '0') tokens_.budget().fail("the number {} starts with 0", text);
  return make<Constant>(line, is_integer ? Value(integer) : Value(number));
}

ExpressionPtr ExpressionParser::parse_parentheses() {
  const int line = tokens_.line();
  tokens_.expect_operator("(");
  if (tokens_.take_operator(")")) return make<ListLiteral>(line, SequenceKind::kTuple, std::vector<ExpressionPtr>());
  ExpressionPtr result = parse_tuple();
  tokens_.expect_operator(")");
  return result;
}

ExpressionPtr ExpressionParser::parse_list() {
  const int line = tokens_.line();
  tokens_.expect_operator("[");
  std::vector<ExpressionPtr> items;
  while (!tokens_.is_operator("]")) {
    if (!items.empty()) tokens_.expect_operator(",");
    if (!tokens_.is_operator("]")) items.push_back(parse());
  }
  tokens_.expect_operator("]");
  return make<ListLiteral>(line, SequenceKind::kList, std::move(items));
}

ExpressionPtr ExpressionParser::parse_dict() {
  const int line = tokens_.line();
  tokens_.expect_operator("{");
  std::vector<ExpressionPtr> keys;
  std::vector<ExpressionPtr> values;
  while (!tokens_.is_operator("}")) {
    if (!keys.empty()) tokens_.expect_operator(",");
    if (tokens_.is_operator("}")) break;
    keys.push_back(parse());
    tokens_.expect_operator(":");
    values.push_back(parse());
  }
  tokens_.expect_operator("}");
  return make<DictLiteral>(line, std::move(keys), std::move(values));
}

}  // namespace quern::chat
