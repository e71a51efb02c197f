// The parsed template: expressions have a value, statements write text and assign. Immutable after parsing.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "chat/jinja_filters.h"
#include "chat/jinja_operators.h"
#include "chat/jinja_tests.h"
#include "chat/jinja_value.h"

namespace quern::chat {

class Rendering;

struct Expression {
  Expression(int line_number, size_t tree_depth) : line(line_number), depth(tree_depth + 1) {}
  virtual ~Expression() = default;

  // Counts a step and limits recursion, then evaluates.
  Value value(Rendering& rendering) const;

  const int line;
  const size_t depth;  // of the tree below: the parser limits it, so that no walk overflows the stack

 private:
  virtual Value evaluate(Rendering& rendering) const = 0;
};

using ExpressionPtr = std::unique_ptr<const Expression>;

inline size_t depth_of(const ExpressionPtr& expression) { return expression ? expression->depth : 0; }
inline size_t depth_of(const std::vector<ExpressionPtr>& expressions) {
  size_t depth = 0;
  for (const ExpressionPtr& one : expressions) depth = std::max(depth, depth_of(one));
  return depth;
}

struct ArgumentList {
  std::vector<ExpressionPtr> positional;
  std::vector<std::pair<std::string, ExpressionPtr>> keywords;

  Arguments evaluate(Rendering& rendering) const;
};

inline size_t depth_of(const ArgumentList& arguments) {
  size_t depth = depth_of(arguments.positional);
  for (const auto& [name, value] : arguments.keywords) depth = std::max(depth, depth_of(value));
  return depth;
}

struct Constant : Expression {
  Constant(int line, Value constant) : Expression(line, 0), constant(std::move(constant)) {}
  Value constant;

 private:
  Value evaluate(Rendering&) const override { return constant; }
};

struct Name : Expression {
  Name(int line, std::string name) : Expression(line, 0), name(std::move(name)) {}
  std::string name;

 private:
  Value evaluate(Rendering& rendering) const override;
};

struct ListLiteral : Expression {
  ListLiteral(int line, SequenceKind kind, std::vector<ExpressionPtr> items)
      : Expression(line, depth_of(items)), kind(kind), items(std::move(items)) {}
  SequenceKind kind;
  std::vector<ExpressionPtr> items;

 private:
  Value evaluate(Rendering& rendering) const override;
};

struct DictLiteral : Expression {
  DictLiteral(int line, std::vector<ExpressionPtr> keys, std::vector<ExpressionPtr> values)
      : Expression(line, std::max(depth_of(keys), depth_of(values))),
        keys(std::move(keys)),
        values(std::move(values)) {}
  std::vector<ExpressionPtr> keys;
  std::vector<ExpressionPtr> values;

 private:
  Value evaluate(Rendering& rendering) const override;
};

struct Attribute : Expression {
  Attribute(int line, ExpressionPtr object, std::string name)
      : Expression(line, depth_of(object)), object(std::move(object)), name(std::move(name)) {}
  ExpressionPtr object;
  std::string name;

 private:
  Value evaluate(Rendering& rendering) const override;
};

struct Subscript : Expression {
  Subscript(int line, ExpressionPtr object, ExpressionPtr key)
      : Expression(line, std::max(depth_of(object), depth_of(key))), object(std::move(object)), key(std::move(key)) {}
  ExpressionPtr object;
  ExpressionPtr key;

 private:
  Value evaluate(Rendering& rendering) const override;
};

// object[start:stop:step]; each part may be absent.
struct Slice : Expression {
  Slice(int line, ExpressionPtr object, std::vector<ExpressionPtr> parts)
      : Expression(line, std::max(depth_of(object), depth_of(parts))),
        object(std::move(object)),
        parts(std::move(parts)) {}
  ExpressionPtr object;
  std::vector<ExpressionPtr> parts;

 private:
  Value evaluate(Rendering& rendering) const override;
};

struct Call : Expression {
  Call(int line, ExpressionPtr callee, ArgumentList arguments)
      : Expression(line, std::max(depth_of(callee), depth_of(arguments))),
        callee(std::move(callee)),
        arguments(std::move(arguments)) {}
  ExpressionPtr callee;
  ArgumentList arguments;

 private:
  Value evaluate(Rendering& rendering) const override;
};

struct FilterCall : Expression {
  FilterCall(int line, ExpressionPtr input, Filter filter, ArgumentList arguments)
      : Expression(line, std::max(depth_of(input), depth_of(arguments))),
        input(std::move(input)),
        filter(filter),
        arguments(std::move(arguments)) {}
  ExpressionPtr input;  // absent in the filter of a block, which is given the block's text
  Filter filter;
  ArgumentList arguments;

  Value apply(Rendering& rendering, const Value& to) const;

 private:
  Value evaluate(Rendering& rendering) const override;
};

struct TestCall : Expression {
  TestCall(int line, ExpressionPtr subject, Test test, ArgumentList arguments)
      : Expression(line, std::max(depth_of(subject), depth_of(arguments))),
        subject(std::move(subject)),
        test(test),
        arguments(std::move(arguments)) {}
  ExpressionPtr subject;
  Test test;
  ArgumentList arguments;

 private:
  Value evaluate(Rendering& rendering) const override;
};

struct Unary : Expression {
  enum class Kind : uint8_t { kNot, kMinus, kPlus };
  Unary(int line, Kind kind, ExpressionPtr operand)
      : Expression(line, depth_of(operand)), kind(kind), operand(std::move(operand)) {}
  Kind kind;
  ExpressionPtr operand;

 private:
  Value evaluate(Rendering& rendering) const override;
};

struct Binary : Expression {
  Binary(int line, Arithmetic operation, ExpressionPtr left, ExpressionPtr right)
      : Expression(line, std::max(depth_of(left), depth_of(right))),
        operation(operation),
        left(std::move(left)),
        right(std::move(right)) {}
  Arithmetic operation;
  ExpressionPtr left;
  ExpressionPtr right;

 private:
  Value evaluate(Rendering& rendering) const override;
};

// a ~ b ~ c
struct Concatenation : Expression {
  Concatenation(int line, std::vector<ExpressionPtr> parts)
      : Expression(line, depth_of(parts)), parts(std::move(parts)) {}
  std::vector<ExpressionPtr> parts;

 private:
  Value evaluate(Rendering& rendering) const override;
};

// first <operator> rest[0] <operator> rest[1] ..., each with its neighbour, as in Python.
struct Comparison : Expression {
  Comparison(int line, ExpressionPtr first, std::vector<Relation> relations, std::vector<ExpressionPtr> rest)
      : Expression(line, std::max(depth_of(first), depth_of(rest))),
        first(std::move(first)),
        relations(std::move(relations)),
        rest(std::move(rest)) {}
  ExpressionPtr first;
  std::vector<Relation> relations;
  std::vector<ExpressionPtr> rest;

 private:
  Value evaluate(Rendering& rendering) const override;
};

// `and` or `or`: the value of the operand that decides.
struct Logical : Expression {
  Logical(int line, bool is_and, std::vector<ExpressionPtr> operands)
      : Expression(line, depth_of(operands)), is_and(is_and), operands(std::move(operands)) {}
  bool is_and;
  std::vector<ExpressionPtr> operands;

 private:
  Value evaluate(Rendering& rendering) const override;
};

struct Conditional : Expression {
  Conditional(int line, ExpressionPtr condition, ExpressionPtr then, ExpressionPtr otherwise)
      : Expression(line, std::max({depth_of(condition), depth_of(then), depth_of(otherwise)})),
        condition(std::move(condition)),
        then(std::move(then)),
        otherwise(std::move(otherwise)) {}
  ExpressionPtr condition;
  ExpressionPtr then;
  ExpressionPtr otherwise;  // may be absent

 private:
  Value evaluate(Rendering& rendering) const override;
};

}  // namespace quern::chat
