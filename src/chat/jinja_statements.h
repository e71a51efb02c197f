// Statements of a parsed template.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "chat/jinja_ast.h"

namespace quern::chat {

enum class Flow : uint8_t { kNext, kBreak, kContinue };

struct Statement {
  explicit Statement(int line_number) : line(line_number) {}
  virtual ~Statement() = default;

  // Counts a step and limits recursion, then executes.
  Flow run(Rendering& rendering) const;

  const int line;

 private:
  virtual Flow execute(Rendering& rendering) const = 0;
};

using StatementPtr = std::unique_ptr<const Statement>;
using Block = std::vector<StatementPtr>;

Flow run_block(const Block& block, Rendering& rendering);

struct TemplateBody {
  Block block;
};

struct Data : Statement {
  Data(int line, std::string text) : Statement(line), text(std::move(text)) {}
  std::string text;

 private:
  Flow execute(Rendering& rendering) const override;
};

struct Print : Statement {
  Print(int line, ExpressionPtr expression) : Statement(line), expression(std::move(expression)) {}
  ExpressionPtr expression;

 private:
  Flow execute(Rendering& rendering) const override;
};

struct Branch {
  ExpressionPtr condition;  // absent for else
  Block block;
};

struct If : Statement {
  If(int line, std::vector<Branch> branches) : Statement(line), branches(std::move(branches)) {}
  std::vector<Branch> branches;

 private:
  Flow execute(Rendering& rendering) const override;
};

// What a value is assigned to: a name, an attribute of a namespace, or several targets that take one item each.
struct Target {
  std::string name;
  std::string attribute;      // empty for a plain name
  std::vector<Target> parts;  // if the name is empty

  void assign(Rendering& rendering, const Value& value) const;
};

struct For : Statement {
  using Statement::Statement;
  Target target;
  ExpressionPtr items;
  ExpressionPtr condition;  // may be absent
  Block body;
  Block otherwise;

 private:
  Flow execute(Rendering& rendering) const override;
  Values select_items(Rendering& rendering) const;
};

struct LoopControl : Statement {
  LoopControl(int line, Flow flow) : Statement(line), flow(flow) {}
  Flow flow;

 private:
  Flow execute(Rendering&) const override { return flow; }
};

struct Set : Statement {
  Set(int line, Target target, ExpressionPtr expression)
      : Statement(line), target(std::move(target)), expression(std::move(expression)) {}
  Target target;
  ExpressionPtr expression;

 private:
  Flow execute(Rendering& rendering) const override;
};

// A block whose text passes through filters, and is then assigned, or written if there is no target.
struct Captured : Statement {
  using Statement::Statement;
  bool has_target = false;
  Target target;
  std::vector<std::unique_ptr<const FilterCall>> filters;
  Block body;

 private:
  Flow execute(Rendering& rendering) const override;
};

// A block with variables of its own: {% generation %} and {% with a = 1 %}.
struct Scoped : Statement {
  using Statement::Statement;
  std::vector<std::pair<Target, ExpressionPtr>> variables;
  Block body;

 private:
  Flow execute(Rendering& rendering) const override;
};

struct Macro : Statement {
  using Statement::Statement;
  std::string name;
  std::vector<std::string> parameters;
  std::vector<ExpressionPtr> defaults;  // of the last parameters
  Block body;

  // In a scope of its own.
  Value call(Rendering& rendering, const Arguments& arguments) const;

 private:
  Flow execute(Rendering& rendering) const override;
  void bind(Rendering& rendering, const Arguments& arguments) const;
  Value default_of(Rendering& rendering, size_t parameter) const;
};

}  // namespace quern::chat
