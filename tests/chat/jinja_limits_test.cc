// Templates that want too much: each is an Error, within seconds and without using much memory or stack.
#include <gtest/gtest.h>

#include "chat/jinja_budget.h"
#include "tests/chat/jinja_support.h"

namespace quern::chat {
namespace {

std::string repeated(std::string_view text, size_t count) {
  std::string result;
  for (size_t i = 0; i < count; ++i) result += text;
  return result;
}

void expect_failure(std::string_view text, std::string_view reason) {
  const std::string message = failure(text);
  EXPECT_NE(message.find(reason), std::string::npos) << text.substr(0, 200) << "\n" << message;
}

TEST(JinjaLimits, SizeOfTheTemplate) {
  EXPECT_EQ(render(std::string(kMaxTemplateBytes, 'a')).size(), kMaxTemplateBytes);
  expect_failure(std::string(kMaxTemplateBytes + 1, 'a'), "at most 1048576 are accepted");
}

TEST(JinjaLimits, NestedSyntax) {
  constexpr std::pair<std::string_view, std::string_view> kBrackets[] = {
      {"(", ")"},   {"[", "]"},       {"{1:", "}"},         {"-", ""},          {"not ", ""}, {"x[", "]"}, {"f(", ")"},
      {"(1,", ")"}, {"[{'a':", "}]"}, {"1 if 1 else ", ""}, {"x|default(", ")"}};
  for (const auto& [open, close] : kBrackets) {
    expect_failure("{{ " + repeated(open, 60'000) + "1" + repeated(close, 60'000) + " }}", "nested more than");
  }
  for (const std::string_view one : {"+1", "|trim", ".a", "[0]", "()", " is none", " if x", "**2"}) {
    expect_failure("{{ 1" + repeated(one, 100'000) + " }}", "nested more than");
  }
  for (const std::string_view one : {"{% if a %}", "{% for i in a %}", "{% generation %}", "{% set a %}", "{% with %}",
                                     "{% macro m() %}", "{% filter trim %}"}) {
    expect_failure(repeated(one, 50'000), "nested more than");
  }
  const std::string target = repeated("(", 60'000) + "a" + repeated(")", 60'000);
  expect_failure("{% for " + target + " in x %}{% endfor %}", "nested more than");
}

TEST(JinjaLimits, LongListsOfOperandsAreNoNesting) {
  EXPECT_EQ(render("{{ 1" + repeated(" or 1", 10'000) + " }}"), "1");
  EXPECT_EQ(render("{{ ''" + repeated(" ~ ''", 10'000) + " }}"), "");
  EXPECT_EQ(render("{% if false %}" + repeated("{% elif false %}", 10'000) + "{% endif %}"), "");
}

TEST(JinjaLimits, RecursionOfMacros) {
  expect_failure("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "calls are nested");
  expect_failure("{% macro f() %}{{ [[[[[[f()]]]]]] }}{% endmacro %}{{ f() }}", "calls are nested");
  expect_failure("{% set f = ['a'] %}{{ f|map(" + repeated("'map', ", 1000) + "'map') }}", "calls are nested");
}

TEST(JinjaLimits, NestedValues) {
  const std::string deeper =
      "{% set ns = namespace(a=[]) %}{% for i in range(100000) %}{% set ns.a = VALUE %}{% endfor %}";
  for (const std::string_view value : {"[ns.a]", "{'a': ns.a}", "(ns.a, 1)", "[ns.a.count]", "[ns.a]|map('list')"}) {
    std::string text = deeper;
    expect_failure(text.replace(text.find("VALUE"), 5, value), "nested more than 100 levels");
  }
  expect_failure(
      "{% set ns = namespace(a=1) %}{% for i in range(100000) %}{% for j in [ns.a] %}{% set ns.a = loop %}"
      "{% endfor %}{% endfor %}",
      "nested more than 100 levels");
  const std::string json = repeated("[", 101) + repeated("]", 101);
  const JinjaTemplate parsed("{{ x }}", "chat.jinja");
  const nlohmann::ordered_json deep = {{"x", nlohmann::ordered_json::parse(json)}};
  EXPECT_NE(test::message_of([&] { parsed.render(deep); }).find("nested more than 100 levels"), std::string::npos);
}

TEST(JinjaLimits, NamespacesThatContainThemselves) {
  EXPECT_EQ(render("{% set ns = namespace() %}{% set ns.a = [ns] %}{{ ns.a|length }}"), "1");
  expect_failure("{% set ns = namespace() %}{% set ns.a = ns %}{{ ns }}", "namespaces are nested");
  EXPECT_EQ(render("{% set ns = namespace() %}{% macro m() %}{% endmacro %}{% set ns.m = m %}"), "");
}

TEST(JinjaLimits, Work) {
  const std::string loops =
      repeated("{% for i in range(1000) %}", 4) + "{% set x = i + i + i + i + i %}" + repeated("{% endfor %}", 4);
  expect_failure(loops, "steps to render");
  expect_failure("{% for i in range(1000000) %}{% endfor %}", "a range of more than 100000 numbers");
  EXPECT_EQ(render("{{ range(100000)|length }}"), "100000");
}

TEST(JinjaLimits, Memory) {
  expect_failure("{{ 'x' * 10000000000 }}", "more than 256 MiB");
  expect_failure("{{ [1] * 9000000000000000000 }}", "more than 256 MiB");
  expect_failure("{% set ns = namespace(s='x') %}{% for i in range(99) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}",
                 "more than 256 MiB");
  expect_failure("{% set s = 'x' * 100000 %}{{ s.replace('x', s) }}", "more than 256 MiB");
  expect_failure("{% set s = 'x' * 100000 %}{{ s.replace('', s) }}", "more than 256 MiB");
  expect_failure("{% set s = 'x' * 100000 %}{{ s.join(s) }}", "more than 256 MiB");
  expect_failure("{% set s = 'x' * 100000 %}{{ s|join(s) }}", "more than 256 MiB");
  expect_failure("{{ ('x\n' * 1000000)|indent(1000) }}", "more than 256 MiB");
  // Twenty lists, each with the one before twice: 21 lists in memory, a million when printed.
  const std::string doubled =
      "{% set ns = namespace(a='0123456789' * 90) %}{% for i in range(20) %}"
      "{% set ns.a = [ns.a, ns.a] %}{% endfor %}";
  expect_failure(doubled + "{{ ns.a }}", "more than 256 MiB");
  expect_failure(doubled + "{{ ns.a|tojson }}", "more than 256 MiB");
}

TEST(JinjaLimits, Output) {
  expect_failure("{% set s = 'x' * 1000000 %}{% for i in range(100) %}{{ s }}{% endfor %}", "writes more than 64 MiB");
}

TEST(JinjaLimits, SearchesAreLinear) {
  const std::string text = "{% set s = 'a' * 4000000 %}{% set n = 'a' * 2000000 ~ 'b' %}";
  EXPECT_EQ(render(text + "{{ n in s }}{{ s.find(n) }}{{ s.split(n)|length }}"), "False-11");
}

TEST(JinjaLimits, Numbers) {
  expect_failure("{{ 9223372036854775807 + 1 }}", "64 bits");
  expect_failure("{{ -9223372036854775807 - 2 }}", "64 bits");
  expect_failure("{{ 2 ** 63 }}", "64 bits");
  expect_failure("{{ 10 ** 1000000000 }}", "64 bits");
  expect_failure("{{ (-9223372036854775807 - 1) // -1 }}", "64 bits");
  expect_failure("{{ '1e30'|int }}", "64 bits");
  expect_failure("{{ 1 // 0 }}", "division by zero");
  expect_failure("{{ 99999999999999999999 }}", "is too large");
  EXPECT_EQ(
      render("{{ 'abc'[9223372036854775807] }}{{ 'abc'[-9223372036854775807:9223372036854775807:9223372036854775807] }}"
             "{{ (-9223372036854775807 - 1) % -1 }}"),
      "a0");
}

}  // namespace
}  // namespace quern::chat
