#include "dashboard/page.h"

#include <algorithm>

namespace quern::dashboard {
namespace {

constexpr std::string_view kStyle = "<!-- style -->", kScript = "<!-- script -->", kData = "<!-- data -->";

std::string joined(std::string_view ending) {
  std::string all;
  for (const PageFile& file : page_files()) {
    if (!file.name.ends_with(ending)) continue;
    all += file.text;
    if (!all.ends_with('\n')) all += '\n';
  }
  return all;
}

// JSON within <script>: "</script>" in a text of it would end the element, and "<!--" change how it is read. Both
// characters occur in JSON only within strings, where they can be escaped.
std::string escaped(std::string_view json) {
  std::string text;
  text.reserve(json.size());
  for (const char c : json) {
    if (c == '<') {
      text += "\\u003c";
    } else {
      text += c;
    }
  }
  return text;
}

}  // namespace

std::string page_html(std::string_view data) {
  std::string_view index;
  for (const PageFile& file : page_files()) {
    if (file.name == "index.html") index = file.text;
  }
  std::string html;
  while (!index.empty()) {
    const size_t at = index.find("<!-- ");
    html += index.substr(0, at);
    index.remove_prefix(std::min(at, index.size()));
    if (index.starts_with(kStyle)) {
      html += "<style>\n" + joined(".css") + "</style>";
      index.remove_prefix(kStyle.size());
    } else if (index.starts_with(kScript)) {
      html += "<script>\n" + joined(".js") + "</script>";
      index.remove_prefix(kScript.size());
    } else if (index.starts_with(kData)) {
      if (!data.empty()) html += "<script type=\"application/json\" id=\"data\">" + escaped(data) + "</script>";
      index.remove_prefix(kData.size());
    } else if (!index.empty()) {
      html += index.front();
      index.remove_prefix(1);
    }
  }
  return html;
}

}  // namespace quern::dashboard
