#include "cli/dashboard_option.h"

#include <fmt/format.h>

#include "cli/version.h"
#include "cli/warnings.h"
#include "core/text.h"

namespace quern::cli {

dashboard::DashboardOptions dashboard_options(const std::string& host, uint64_t port) {
  dashboard::DashboardOptions options;
  options.server.host = host;
  options.server.port = static_cast<uint16_t>(port);
  options.version = version() + " (" + commit() + ")";
  return options;
}

void add_dashboard_flag(Parser command, std::optional<uint64_t>& port) {
  command.add_flag("--dashboard", port, dashboard::HttpServerOptions().port,
                   "Show the run in a browser while it trains, on this port or the next free one", {0, 65535});
}

void announce(const dashboard::Dashboard& dashboard, const std::string& host, uint64_t port, report::Output& out) {
  const bool local = host == "127.0.0.1" || host == "localhost" || host == "::1" || host == "[::1]";
  if (!local) {
    warn(
        fmt::format("--host {}: everybody who can reach this machine can read these runs; there is no password", host));
  }
  if (port != 0 && dashboard.port() != port) out.print("port {} is in use\n", port);
  out.print("dashboard: {}\n", dashboard.url());
  out.flush();
}

}  // namespace quern::cli
