#include "chat/jinja_parser.h"

#include <initializer_list>
#include <string>
#include <vector>

#include "chat/jinja_expression_parser.h"
#include "core/text.h"

namespace quern::chat {
namespace {

class Parser {
 public:
  explicit Parser(TokenStream& tokens) : tokens_(tokens), expressions_(tokens) {}

  std::unique_ptr<const TemplateBody> run() {
    auto body = std::make_unique<TemplateBody>();
    body->block = parse_block({});
    return body;
  }

 private:
  // Up to a tag whose name is one of `ends`, and its '{%', or to the end of the template if `ends` is empty.
  Block parse_block(std::initializer_list<std::string_view> ends) {
    const ExpressionParser::Level level(expressions_);
    Block block;
    while (!tokens_.is(TokenKind::kEnd)) {
      const auto [kind, text, line] = tokens_.take();
      if (kind == TokenKind::kData) {
        block.push_back(std::make_unique<Data>(line, std::string(text)));
      } else if (kind == TokenKind::kVariableBegin) {
        block.push_back(std::make_unique<Print>(line, expressions_.parse_tuple()));
        tokens_.expect(TokenKind::kVariableEnd, "'}}'");
      } else {
        if (tokens_.is_any_name(ends)) return block;
        block.push_back(parse_statement());
        end_tag();
      }
    }
    if (ends.size() > 0) tokens_.fail_expected(fmt::format("'{}'", *(ends.end() - 1)));
    return block;
  }

  void end_tag() { tokens_.expect(TokenKind::kBlockEnd, "'%}'"); }

  // The contents of a statement behind its first tag, and the name of its last.
  Block parse_body(std::string_view end) {
    end_tag();
    Block body = parse_block({end});
    tokens_.take();
    return body;
  }

  // The same, for statements whose contents are not a part of the loop around them: a break would have to leave them.
  Block parse_separate_body(std::string_view end) {
    const size_t loops = std::exchange(loops_, 0);
    Block body = parse_body(end);
    loops_ = loops;
    return body;
  }

  StatementPtr parse_statement() {
    const auto [kind, name, line] = tokens_.expect(TokenKind::kName, "the name of a tag");
    if (name == "for") return parse_for(line);
    if (name == "if") return parse_if(line);
    if (name == "set") return parse_set(line);
    if (name == "macro") return parse_macro(line);
    if (name == "filter") return parse_filter_block(line);
    if (name == "with") return parse_with(line);
    if (name == "generation") return parse_generation(line);
    if (name == "break") return parse_loop_control(line, Flow::kBreak);
    if (name == "continue") return parse_loop_control(line, Flow::kContinue);
    tokens_.budget().at_line(line);
    const bool is_misplaced = name.starts_with("end") || name == "else" || name == "elif";
    if (is_misplaced) tokens_.budget().fail("unexpected tag '{}'", name);
    tokens_.budget().fail("the tag '{}' is not supported", name);
  }

  StatementPtr parse_if(int line) {
    std::vector<Branch> branches;
    std::string_view tag = "elif";
    while (tag != "endif") {
      ExpressionPtr condition = tag == "elif" ? expressions_.parse_or_tuple() : nullptr;
      const bool is_else = !condition;
      end_tag();
      branches.push_back(
          {std::move(condition), is_else ? parse_block({"endif"}) : parse_block({"elif", "else", "endif"})});
      tag = tokens_.take().text;
    }
    return std::make_unique<If>(line, std::move(branches));
  }

  StatementPtr parse_for(int line) {
    auto loop = std::make_unique<For>(line);
    loop->target = parse_target();
    tokens_.expect_name("in");
    loop->items = expressions_.parse_or_tuple();
    if (tokens_.take_name("if")) loop->condition = expressions_.parse();
    if (tokens_.is_name("recursive")) tokens_.budget().fail("recursive loops are not supported");
    end_tag();
    ++loops_;
    loop->body = parse_block({"else", "endfor"});
    --loops_;
    if (tokens_.take().text == "else") loop->otherwise = parse_body("endfor");
    return loop;
  }

  StatementPtr parse_loop_control(int line, Flow flow) {
    if (loops_ == 0) tokens_.budget().fail("'{}' outside of a loop", flow == Flow::kBreak ? "break" : "continue");
    return std::make_unique<LoopControl>(line, flow);
  }

  Target parse_name_target() {
    Target target;
    target.name = tokens_.expect(TokenKind::kName, "a name to assign to").text;
    constexpr std::string_view kConstants[] = {"true", "false", "none", "True", "False", "None"};
    if (std::find(std::begin(kConstants), std::end(kConstants), target.name) != std::end(kConstants)) {
      tokens_.budget().fail("cannot assign to '{}'", target.name);
    }
    return target;
  }

  Target parse_one_target() {
    const ExpressionParser::Level level(expressions_);
    if (!tokens_.take_operator("(")) return parse_name_target();
    Target target = parse_target();
    tokens_.expect_operator(")");
    return target;
  }

  Target parse_target() {
    Target first = parse_one_target();
    if (!tokens_.is_operator(",")) return first;
    Target target;
    target.parts.push_back(std::move(first));
    while (tokens_.take_operator(",")) {
      if (tokens_.is_operator("=") || tokens_.is_operator(")") || tokens_.is_name("in")) break;
      target.parts.push_back(parse_one_target());
    }
    return target;
  }

  StatementPtr parse_set(int line) {
    Target target = parse_target();
    if (target.parts.empty() && tokens_.take_operator(".")) {
      target.attribute = tokens_.expect(TokenKind::kName, "the name of an attribute").text;
    }
    if (tokens_.take_operator("=")) {
      return std::make_unique<Set>(line, std::move(target), expressions_.parse_tuple());
    }
    auto captured = std::make_unique<Captured>(line);
    captured->has_target = true;
    captured->target = std::move(target);
    while (tokens_.take_operator("|")) captured->filters.push_back(expressions_.parse_filter(nullptr));
    if (!tokens_.is(TokenKind::kBlockEnd)) tokens_.fail_expected("'='");
    captured->body = parse_separate_body("endset");
    return captured;
  }

  StatementPtr parse_filter_block(int line) {
    auto captured = std::make_unique<Captured>(line);
    captured->filters.push_back(expressions_.parse_filter(nullptr));
    while (tokens_.take_operator("|")) captured->filters.push_back(expressions_.parse_filter(nullptr));
    captured->body = parse_separate_body("endfilter");
    return captured;
  }

  StatementPtr parse_with(int line) {
    auto scoped = std::make_unique<Scoped>(line);
    while (!tokens_.is(TokenKind::kBlockEnd)) {
      if (!scoped->variables.empty()) tokens_.expect_operator(",");
      Target target = parse_one_target();
      tokens_.expect_operator("=");
      scoped->variables.emplace_back(std::move(target), expressions_.parse());
    }
    scoped->body = parse_body("endwith");
    return scoped;
  }

  StatementPtr parse_generation(int line) {
    auto scoped = std::make_unique<Scoped>(line);
    scoped->body = parse_separate_body("endgeneration");
    return scoped;
  }

  StatementPtr parse_macro(int line) {
    auto macro = std::make_unique<Macro>(line);
    macro->name = tokens_.expect(TokenKind::kName, "the name of a macro").text;
    tokens_.expect_operator("(");
    while (!tokens_.is_operator(")")) {
      parse_parameter(*macro);
      if (!tokens_.is_operator(")")) tokens_.expect_operator(",");
    }
    tokens_.expect_operator(")");
    expressions_.enter_macro();
    macro->body = parse_separate_body("endmacro");
    expressions_.leave_macro();
    return macro;
  }

  void parse_parameter(Macro& macro) {
    macro.parameters.push_back(parse_name_target().name);
    if (tokens_.take_operator("=")) {
      macro.defaults.push_back(expressions_.parse());
    } else if (!macro.defaults.empty()) {
      tokens_.fail_expected("a default, as for the parameter before");
    }
  }

  TokenStream& tokens_;
  ExpressionParser expressions_;
  size_t loops_ = 0;  // around the current statement
};

}  // namespace

std::unique_ptr<const TemplateBody> parse_template(std::string_view text, Budget& budget) {
  if (text.size() > kMaxTemplateBytes) {
    budget.fail("a template of {} bytes; at most {} are accepted", text.size(), kMaxTemplateBytes);
  }
  if (!is_utf8(text)) budget.fail("the template is not UTF-8");
  const std::string source = normalize_source(text);
  TokenStream tokens(tokenize(source, budget), budget);
  return Parser(tokens).run();
}

}  // namespace quern::chat
