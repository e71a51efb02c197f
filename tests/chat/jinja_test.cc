// What templates render; jinja_oracle_test.py compares much more with Jinja2.
#include <gtest/gtest.h>

#include <ctime>
#include <thread>

#include "tests/chat/jinja_support.h"

namespace quern::chat {
namespace {

constexpr std::string_view kGreeting = R"({"messages": [{"role": "system", "content": "Be brief."},
    {"role": "user", "content": " Hi "}, {"role": "assistant", "content": "Hello."}],
    "bos_token": "<s>", "eos_token": "</s>", "add_generation_prompt": true, "date_string": "26 Jul 2024"})";

TEST(JinjaFamilies, RenderTheirMarkup) {
  auto templates = load_templates();
  EXPECT_EQ(render(templates["chatml"], kGreeting),
            "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\n Hi <|im_end|>\n"
            "<|im_start|>assistant\nHello.<|im_end|>\n<|im_start|>assistant\n");
  EXPECT_EQ(render(templates["smollm2"], kGreeting), render(templates["chatml"], kGreeting));
  EXPECT_EQ(render(templates["zephyr"], kGreeting),
            "<|system|>\nBe brief.</s>\n<|user|>\n Hi </s>\n<|assistant|>\nHello.</s>\n<|assistant|>\n");
  EXPECT_EQ(render(templates["llama3"], kGreeting),
            "<s><|start_header_id|>system<|end_header_id|>\n\nBe brief.<|eot_id|>"
            "<|start_header_id|>user<|end_header_id|>\n\nHi<|eot_id|>"
            "<|start_header_id|>assistant<|end_header_id|>\n\nHello.<|eot_id|>"
            "<|start_header_id|>assistant<|end_header_id|>\n\n");
  EXPECT_EQ(render(templates["llama3_tools"], kGreeting),
            "<s><|start_header_id|>system<|end_header_id|>\n\n"
            "Cutting Knowledge Date: December 2023\nToday Date: 26 Jul 2024\n\nBe brief.<|eot_id|>"
            "<|start_header_id|>user<|end_header_id|>\n\nHi<|eot_id|>"
            "<|start_header_id|>assistant<|end_header_id|>\n\nHello.<|eot_id|>"
            "<|start_header_id|>assistant<|end_header_id|>\n\n");
}

TEST(JinjaFamilies, Qwen3DropsThoughtsOfEarlierAnswersOnly) {
  const std::string text = render(load_templates()["qwen3"], R"({"messages": [
      {"role": "user", "content": "one"}, {"role": "assistant", "content": "<think>\nhm\n</think>\n\nfirst"},
      {"role": "user", "content": "two"}, {"role": "assistant", "content": "<think>\naha\n</think>\n\nsecond"}]})");
  EXPECT_EQ(text,
            "<|im_start|>user\none<|im_end|>\n<|im_start|>assistant\nfirst<|im_end|>\n<|im_start|>user\ntwo<|im_end|>\n"
            "<|im_start|>assistant\n<think>\naha\n</think>\n\nsecond<|im_end|>\n");
}

TEST(JinjaFamilies, ToolsAreJsonInTheOrderOfTheirKeys) {
  const std::string text = render(load_templates()["qwen2_5"], R"({"messages": [{"role": "user", "content": "q"}],
      "tools": [{"type": "function", "function": {"name": "größe", "a": [1, 2.0, null, true]}}]})");
  EXPECT_NE(text.find(R"({"type": "function", "function": {"name": "größe", "a": [1, 2.0, null, true]}})"),
            std::string::npos);
}

TEST(JinjaWhitespace, BlocksTakeTheirLineWithThem) {
  EXPECT_EQ(render("a\n  {% if true %}\nb\n  {% endif %}\nc"), "a\nb\nc");
  EXPECT_EQ(render("  {# note #}\n  {{ 1 }}\n"), "  1");
  EXPECT_EQ(render("  {%+ if true +%}\nb{% endif %}"), "  \nb");
  EXPECT_EQ(render("a \n {%- if true -%} \n b \n {%- endif -%} \n c"), "abc");
  EXPECT_EQ(render("a {{- 1 -}} b {#- note -#} c"), "a1bc");
  EXPECT_EQ(render("x {% if true %}y{% endif %}"), "x y");
}

TEST(JinjaWhitespace, LineEndsAreNormalizedAndOneAtTheEndIsDropped) {
  EXPECT_EQ(render("a\r\nb\rc\n\n"), "a\nb\nc\n");
  EXPECT_EQ(render("{{ 'a\r\nb' }}"), "a\nb");
}

TEST(JinjaStatements, RawIsNotInterpreted) {
  EXPECT_EQ(render("{% raw %}{{ x }}{% if %}{% endraw %}!"), "{{ x }}{% if %}!");
  EXPECT_EQ(render("{%- raw -%} {# #} {%- endraw -%} !"), "{# #}!");
}

TEST(JinjaStatements, ForKnowsWhereItIs) {
  EXPECT_EQ(
      render(
          "{% for i in [5, 6, 7] %}{{ loop.index }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }} {% endfor %}"),
      "12TrueFalse 21FalseFalse 30FalseTrue ");
  EXPECT_EQ(render("{% for i in 'ab' %}{{ loop.previtem }}{{ i }}{{ loop.nextitem }},{% endfor %}"), "ab,ab,");
  EXPECT_EQ(render("{% for i in range(9) if i is odd %}{{ i }}/{{ loop.length }} {% endfor %}"), "1/4 3/4 5/4 7/4 ");
  EXPECT_EQ(render("{% for i in [] %}{% else %}none{% endfor %}"), "none");
  EXPECT_EQ(render("{% for k, (a, b) in [(1, (2, 3))] %}{{ k }}{{ a }}{{ b }}{% endfor %}"), "123");
  EXPECT_EQ(
      render("{% for i in range(9) %}{% if i == 2 %}{% continue %}{% endif %}{% if i == 4 %}{% break %}{% endif %}"
             "{{ i }}{% endfor %}"),
      "013");
}

TEST(JinjaStatements, AssignmentsInALoopEndWithItsIteration) {
  EXPECT_EQ(render("{% set x = 1 %}{% for i in [7, 8] %}{{ x }}{% set x = i %}{{ x }}{% endfor %}{{ x }}"), "17181");
  EXPECT_EQ(render("{% set ns = namespace(n=0) %}{% for i in [7, 8] %}{% set ns.n = ns.n + i %}{% endfor %}{{ ns.n }}"),
            "15");
  EXPECT_EQ(render("{% if true %}{% set x = 1 %}{% endif %}{{ x }}"), "1");
  EXPECT_EQ(render("{% set x %}<{{ 1 }}>{% endset %}{{ x }}{% set a, b = 1, 2 %}{{ b }}{{ a }}"), "<1>21");
}

TEST(JinjaStatements, MacrosSeeTheVariablesOfTheirPlace) {
  EXPECT_EQ(
      render("{% macro m(a, b='B') %}{{ a }}{{ b }}{{ x }}{% endmacro %}{% set x = 2 %}{{ m(1) }}{{ m(b=3, a=4) }}"),
      "1B2432");
  EXPECT_EQ(render("{% macro m() %}[{{ i }}]{% endmacro %}{% for i in [1] %}{{ m() }}{% endfor %}"), "[]");
  EXPECT_EQ(render("{% macro f(n) %}{{ n }}{% if n > 0 %}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(3) }}"), "3210");
}

TEST(JinjaStatements, GenerationIsTransparent) {
  EXPECT_EQ(render("a{% generation %}\nb{{ 1 }}{% endgeneration %}c"), "ab1c");
}

TEST(JinjaExpressions, PrintAsPythonDoes) {
  EXPECT_EQ(render("{{ [1, 2.0, 1e16, 0.0001, 1e-5, true, none, 'a', \"it's\", (1,), {'k': []}] }}"),
            R"([1, 2.0, 1e+16, 0.0001, 1e-05, True, None, 'a', "it's", (1,), {'k': []}])");
  EXPECT_EQ(render("{{ none }}{{ true }}{{ 3.0 }}{{ missing }}{{ '\\x41\\u00e9\\n' }}"), "NoneTrue3.0Aé\n");
  EXPECT_EQ(render("{{ 7 / 2 }} {{ -7 // 2 }} {{ -7 % 3 }} {{ 2 ** 10 }} {{ 1 ~ 'a' ~ none }}"),
            "3.5 -4 2 1024 1aNone");
}

TEST(JinjaExpressions, BindAsInJinja) {
  EXPECT_EQ(render("{{ 1 + 2 * 3 }}{{ not false and true }}{{ 1 if false else 2 if true else 3 }}"), "7True2");
  EXPECT_EQ(render("{{ -1|abs }}{{ 1 < 2 < 3 }}{{ 1 not in [2] }}{{ 'a' 'b' }}"), "1TrueTrueab");
  EXPECT_EQ(render("{{ {'a': {'b': 1}}['a'].b }}{{ ('x' if false) is undefined }}"), "1True");
}

TEST(JinjaExpressions, TextIsIndexedByCharacter) {
  EXPECT_EQ(render("{{ s|length }}{{ s[1] }}{{ s[::-1] }}{{ s[-2:] }}{{ s.find('語') }}", R"({"s": "日本語é"})"),
            "4本é語本日語é2");
}

TEST(JinjaExpressions, MethodsComeBeforeKeysWithADotOnly) {
  EXPECT_EQ(render("{{ d.items()|list }}{{ d['items'] }}{{ d.get('none', 3) }}", R"({"d": {"items": 1}})"),
            "[('items', 1)]13");
}

TEST(JinjaExpressions, FiltersThatGiveIteratorsAreUsedUp) {
  EXPECT_EQ(render("{% set i = [1, 2]|map('string') %}{{ i|list }}{{ i|list }}"), "['1', '2'][]");
}

TEST(JinjaFunctions, DateIsToday) {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  EXPECT_EQ(render("{{ strftime_now('%Y') }}"), std::to_string(local.tm_year + 1900));
}

TEST(JinjaFunctions, JsonIsWrittenAsPythonDoes) {
  EXPECT_EQ(render("{{ x|tojson }}", R"({"x": {"b": "<é'\"\\\n\u0001", "a": [1.0, {}]}})"),
            R"({"b": "<é'\"\\\n\u0001", "a": [1.0, {}]})");
  EXPECT_EQ(render("{{ x|tojson(indent=2) }}", R"({"x": {"a": [1, 2], "b": []}})"),
            "{\n  \"a\": [\n    1,\n    2\n  ],\n  \"b\": []\n}");
}

TEST(JinjaErrors, NameTheLine) {
  EXPECT_EQ(failure("a\n{{ x.y.z }}"), "[template] chat.jinja:2: 'x' is undefined");
  EXPECT_EQ(failure("\n\n{{ d.a.b }}", R"({"d": {}})"), "[template] chat.jinja:3: 'dict object' has no attribute 'a'");
  EXPECT_EQ(failure("{% if true %}\n{{ raise_exception('roles must alternate') }}{% endif %}"),
            "[template] chat.jinja:2: roles must alternate");
  EXPECT_EQ(failure("{{ 1 +\n 'a' }}"), "[template] chat.jinja:1: unsupported operands for +: 'int' and 'str'");
  EXPECT_EQ(failure("\n{% for a, b in [1] %}{% endfor %}"),
            "[template] chat.jinja:2: a value of type 'int' cannot be iterated");
}

TEST(JinjaErrors, NameWhatIsNotSupported) {
  EXPECT_EQ(failure("\n{% include 'x' %}"), "[template] chat.jinja:2: the tag 'include' is not supported");
  EXPECT_EQ(failure("{{ x|urlize }}"), "[template] chat.jinja:1: the filter 'urlize' is not supported");
  EXPECT_EQ(failure("{{ x is escaped }}"), "[template] chat.jinja:1: the test 'escaped' is not supported");
  EXPECT_EQ(failure("{{ 'a'.zfill(3) }}"), "[template] chat.jinja:1: the method 'zfill' of 'str' is not supported");
  EXPECT_EQ(failure("{{ f(*x) }}"), "[template] chat.jinja:1: arguments with '*' are not supported");
  EXPECT_EQ(failure("{{ [].append(1) }}"), "[template] chat.jinja:1: the method 'append' of 'list' is not supported");
}

TEST(JinjaErrors, SyntaxIsCheckedBeforeRendering) {
  EXPECT_EQ(failure("{{ a"), "[template] chat.jinja:1: expected '}}', found the end of the template");
  EXPECT_EQ(failure("{% if a %}\n"), "[template] chat.jinja:1: expected 'endif', found the end of the template");
  EXPECT_EQ(failure("{% endif %}"), "[template] chat.jinja:1: unexpected tag 'endif'");
  EXPECT_EQ(failure("\n{{ (1] }}"), "[template] chat.jinja:2: expected ')', found ']'");
  EXPECT_EQ(failure("{{ 'a }}"), "[template] chat.jinja:1: the text is not closed by '");
  EXPECT_EQ(failure("{# a"), "[template] chat.jinja:1: the comment is not closed by '#}'");
  EXPECT_EQ(failure("{% break %}"), "[template] chat.jinja:1: 'break' outside of a loop");
  EXPECT_EQ(failure("{{ 1 2 }}"), "[template] chat.jinja:1: expected '}}', found '2'");
  EXPECT_EQ(failure("\xff"), "[template] chat.jinja:1: the template is not UTF-8");
}

TEST(JinjaTemplates, AreSharedByThreads) {
  const JinjaTemplate parsed(load_templates()["qwen3"], "qwen3");
  const nlohmann::ordered_json variables = parse_ordered_json(kGreeting);
  const std::string expected = parsed.render(variables);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 50; ++round) EXPECT_EQ(parsed.render(variables), expected);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace quern::chat
