#include "words.h"

#include <algorithm>
#include <iterator>
#include <regex>

#include "core/text.h"

namespace quern::python {
namespace {

// Flags without a value in the program.
bool is_switch(const std::string& name) { return name == "resume"; }

std::string argument_of(const std::smatch& flag) {
  const std::string before = flag[1], setting = flag[2], set_value = flag[3], value = flag[5];
  std::string name = flag[4];
  if (!setting.empty()) return before + "set={\"" + setting + "\": " + set_value + "}";
  std::replace(name.begin(), name.end(), '-', '_');
  if (name == "from") name = "init_from";  // a keyword of Python
  return before + name + "=" + (is_switch(name) ? "True" : value);
}

}  // namespace

// A flag is at the beginning of a word. File names are in messages too, but none that begins with two dashes can be
// mistaken for a flag without having been typed as one.
std::string in_python_words(std::string_view message) {
  std::string text = printable(message);
  if (text.find("--") == std::string::npos) return text;
  constexpr std::string_view kListed = "`quern train --print-config` lists them";
  if (const size_t at = text.find(kListed); at != std::string::npos) {
    text.replace(at, kListed.size(), "quern.preset(\"tiny\") has all of them");
  }
  static const std::regex kFromRun(R"(quern train --from (\S+)(?: (.+?))? --run NEW)");
  for (std::smatch found; std::regex_search(text, found, kFromRun);) {
    const std::string data = found[2].matched ? "\"" + found[2].str() + "\", " : "";
    const std::string call = "quern.train(" + data + "init_from=\"" + found[1].str() + "\", out=\"NEW\")";
    text.replace(static_cast<size_t>(found.position()), static_cast<size_t>(found.length()), call);
  }
  static const std::regex kFlag(
      R"((^|[ (`])--(?:set ([a-z_]+\.[a-z_0-9]+)=([^\s;,)`]+)|([a-z][a-z0-9-]*)(?:[ =](?=[0-9])([0-9][\w.+-]*))?))");
  std::string words;
  auto rest = text.cbegin();
  for (std::sregex_iterator flag(text.cbegin(), text.cend(), kFlag), end; flag != end; ++flag) {
    words.append(rest, text.cbegin() + flag->position());
    words += argument_of(*flag);
    rest = text.cbegin() + flag->position() + flag->length();
  }
  return words.append(rest, text.cend());
}

}  // namespace quern::python
