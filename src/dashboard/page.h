// The page that the dashboard serves and that a report is, as one HTML document.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace quern::dashboard {

// A file of src/dashboard/page, which the build embeds.
struct PageFile {
  std::string_view name, text;
};
std::span<const PageFile> page_files();

// index.html with the style sheets and scripts in it, in the order of their names. It loads nothing else. `data`, which
// must be JSON, is embedded for a report; without it, the page asks the server.
std::string page_html(std::string_view data = {});

}  // namespace quern::dashboard
