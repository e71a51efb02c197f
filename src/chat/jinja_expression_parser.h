// Parses the expressions inside of tags.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "chat/jinja_ast.h"
#include "chat/jinja_token_stream.h"

namespace quern::chat {

class ExpressionParser {
 public:
  explicit ExpressionParser(TokenStream& tokens) : tokens_(tokens) {}

  ExpressionPtr parse();           // with a conditional expression
  ExpressionPtr parse_or();        // without
  ExpressionPtr parse_tuple();     // one expression, or several with commas, which make a tuple
  ExpressionPtr parse_or_tuple();  // the same, without conditional expressions: before the `if` of a loop
  std::unique_ptr<const FilterCall> parse_filter(ExpressionPtr input);  // behind '|'

  // In a macro, some names have a meaning that is not supported.
  void enter_macro() { ++macros_; }
  void leave_macro() { --macros_; }

  // Levels of nesting; fails if there are too many.
  class Level {
   public:
    explicit Level(ExpressionParser& parser);
    ~Level() { --parser_.level_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;

   private:
    ExpressionParser& parser_;
  };

 private:
  template <typename Node, typename... Args>
  std::unique_ptr<const Node> make(int line, Args&&... args) const {
    return checked(std::make_unique<const Node>(line, std::forward<Args>(args)...));
  }
  template <typename Node>
  std::unique_ptr<const Node> checked(std::unique_ptr<const Node> node) const {
    if (node->depth > kMaxSyntaxDepth) fail_deep();
    return node;
  }
  [[noreturn]] void fail_deep() const;

  template <typename Parse>
  ExpressionPtr tuple_of(Parse parse);
  ExpressionPtr parse_and();
  ExpressionPtr parse_not();
  ExpressionPtr parse_comparison();
  bool take_relation(Relation& relation);
  ExpressionPtr parse_sum();
  ExpressionPtr parse_concatenation();
  ExpressionPtr parse_product();
  ExpressionPtr parse_power();
  ExpressionPtr parse_unary(bool with_filters);
  ExpressionPtr parse_primary();
  ExpressionPtr parse_name();
  ExpressionPtr parse_strings();
  ExpressionPtr parse_number();
  ExpressionPtr parse_parentheses();
  ExpressionPtr parse_list();
  ExpressionPtr parse_dict();
  ExpressionPtr parse_postfix(ExpressionPtr object);
  ExpressionPtr parse_attribute(ExpressionPtr object);
  ExpressionPtr parse_subscript(ExpressionPtr object);
  ExpressionPtr parse_call(ExpressionPtr callee);
  ExpressionPtr parse_filters_and_tests(ExpressionPtr operand);
  ExpressionPtr parse_test(ExpressionPtr subject);
  ArgumentList parse_arguments();
  ArgumentList parse_test_arguments();
  void parse_argument(ArgumentList& arguments);

  TokenStream& tokens_;
  size_t level_ = 0;
  size_t macros_ = 0;
};

}  // namespace quern::chat
