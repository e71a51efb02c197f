// Templates that are damaged in thousands of ways: each renders, or is an Error.
#include <gtest/gtest.h>

#include <cstdlib>

#include "core/text.h"
#include "tests/chat/jinja_support.h"
#include "tests/support/mutation.h"

namespace quern::chat {
namespace {

const std::vector<std::string> kWords = {"{%",
                                         "%}",
                                         "{{",
                                         "}}",
                                         "{#",
                                         "#}",
                                         "{%-",
                                         "-%}",
                                         "{{-",
                                         "-}}",
                                         "{% for ",
                                         "{% endfor %}",
                                         "{% if ",
                                         "{% else %}",
                                         "{% endif %}",
                                         "{% set ",
                                         "{% raw %}",
                                         "{% endraw %}",
                                         "{% macro m(",
                                         "{% endmacro %}",
                                         "{% break %}",
                                         "[::-1]",
                                         "[0]",
                                         "|length",
                                         "|tojson",
                                         "|list",
                                         "|sort",
                                         "|map('upper')",
                                         "|join",
                                         ".split(",
                                         ".items()",
                                         ".strip()",
                                         "loop.",
                                         "namespace(",
                                         "range(9)",
                                         "'",
                                         "\"",
                                         "\\",
                                         "(",
                                         ")",
                                         "[",
                                         "]",
                                         "{",
                                         "}",
                                         "|",
                                         " is ",
                                         " in ",
                                         " not ",
                                         " if ",
                                         " else ",
                                         "**",
                                         "//",
                                         "~",
                                         "-1",
                                         "99999999",
                                         "1e308",
                                         "none",
                                         "true",
                                         "messages",
                                         "\xc3\xa9",
                                         "\xe2\x80\xa8",
                                         "{% set ns.a = ns %}",
                                         "m(m)",
                                         "loop",
                                         "|unique",
                                         "|selectattr('a')",
                                         " * 999",
                                         "|indent(",
                                         ".replace('', 'xx')",
                                         "|first",
                                         "|reverse",
                                         "|round(3)"};

constexpr std::string_view kVariables = R"({"messages": [{"role": "system", "content": "<think>\n\na\n</think>b"},
    {"role": "user", "content": "日本 é"}, {"role": "assistant", "content": "", "tool_calls": [{"type": "function",
    "function": {"name": "f", "arguments": {"a": [1, 2.5, null, true]}}}]}, {"role": "tool", "content": {"x": 1}}],
    "tools": [{"name": "f", "parameters": {}}], "bos_token": "<s>", "eos_token": "</s>",
    "add_generation_prompt": true})";

size_t rounds() {
  const char* wanted = std::getenv("QUERN_JINJA_FUZZ");
  return wanted ? std::strtoul(wanted, nullptr, 10) : 20'000;
}

TEST(JinjaFuzz, DamagedTemplatesRenderOrAreErrorsTenThousandTimes) {
  std::vector<std::string> good;
  for (const auto& [name, text] : load_templates()) good.push_back(text);
  good.emplace_back(
      "{% macro m(a, b=1) %}{{ a ~ b }}{% endmacro %}{% set ns = namespace(a=1) %}{{ m(ns.a)|upper }}"
      "{% for k, v in {'a': [1, 'x'], 2: (3,)}.items() if v %}{{ loop.previtem }}{{ k }}{{ v[::-1]|tojson }}"
      "{% set ns.a = [ns.a, v]|sort|unique|list %}{% else %}x{% endfor %}{{ 'a-b'.split('-', 1)|join('+') }}");
  test::Mutator mutator(good, kWords, 7);
  const nlohmann::ordered_json variables = parse_ordered_json(kVariables);
  size_t rendered = 0;
  for (size_t i = 0; i < rounds(); ++i) {
    try {
      const std::string text = JinjaTemplate(mutator.next(), "fuzz").render(variables);
      EXPECT_TRUE(is_utf8(text));
      ++rendered;
    } catch (const Error& error) {
      ASSERT_TRUE(std::string_view(error.what()).starts_with("[template] fuzz:")) << error.what();
    }
  }
  EXPECT_GT(rendered, rounds() / 20);
}

}  // namespace
}  // namespace quern::chat
