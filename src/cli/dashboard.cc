// quern dashboard: shows runs in a browser while they train, or later.
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/dashboard_option.h"
#include "cli/stop_signals.h"
#include "core/error.h"
#include "core/text.h"
#include "dashboard/dashboard.h"
#include "report/find_runs.h"

namespace quern::cli {
namespace {

namespace fs = std::filesystem;

struct Options {
  std::vector<std::string> words, runs;
  uint64_t port = dashboard::HttpServerOptions().port;
  std::string host = dashboard::HttpServerOptions().host;
};

constexpr const char* kExamples = R"(Examples:
  quern dashboard --run runs/first                  one run, while it trains or afterwards
  quern dashboard runs/first runs/second            several runs on the same axes
  quern dashboard runs                              all runs below a directory, also those that start later
  quern dashboard --run runs/first --port 9000
  quern train --run runs/first --dashboard          the same while training, in the same process

Open the printed address in a browser. The page updates by itself; Ctrl-C ends the program. It reads the files of the
runs and changes nothing, so it can be started and ended at any time.

It listens on 127.0.0.1, which only programs on this machine can reach. From another machine, use a tunnel:
  ssh -L 8321:127.0.0.1:8321 MACHINE                then open http://127.0.0.1:8321/ there
--host 0.0.0.0 lets everybody in the network read it: there is no password. If the port is in use, the next free one is
taken. `quern report --html FILE` writes the same page, with its data, into one file.)";

void sort_in(const fs::path& path, dashboard::DashboardOptions& options) {
  std::error_code code;
  if (!fs::is_directory(path, code)) {
    throw Error("dashboard: {}: expected the directory of a run, or one with runs below it, found {}",
                in_quotes(path.string()), fs::exists(path, code) ? "a file" : "none");
  }
  (report::is_run(path) ? options.runs : options.folders).push_back(path);
}

int serve(const Options& given) {
  dashboard::DashboardOptions options = dashboard_options(given.host, given.port);
  std::vector<std::string> paths = given.words;
  paths.insert(paths.end(), given.runs.begin(), given.runs.end());
  if (paths.empty()) {
    throw Error("dashboard: expected --run DIR, a run, or a directory with runs; run `quern dashboard --help`");
  }
  for (const std::string& path : paths) sort_in(path, options);
  const std::atomic<bool>& stop = stop_on_signals();
  dashboard::Dashboard dashboard(options);
  report::Output out(stdout);
  announce(dashboard, given.host, given.port, out);
  dashboard.serve(stop);
  return 0;
}

}  // namespace

Command add_dashboard(Parser root) {
  const auto options = std::make_shared<Options>();
  Parser command = root.add_command("dashboard", "Show runs in a browser, while they train or afterwards");
  command.add_words("DIR", options->words, "Directories of runs, or with runs below them");
  command.add_list("--run", options->runs, "DIR", "The same as DIR; may be repeated");
  command.add_number("--port", options->port, "P", "The port to listen on; 0: any", {0, 65535});
  command.add_text("--host", options->host, "H", "The address to listen on");
  command.set_footer(kExamples);
  return {command, [options] { return serve(*options); }};
}

}  // namespace quern::cli
