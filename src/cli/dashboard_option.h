// What `quern dashboard` and --dashboard have in common.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cli/parser.h"
#include "dashboard/dashboard.h"
#include "report/output.h"

namespace quern::cli {

// Without runs.
dashboard::DashboardOptions dashboard_options(const std::string& host, uint64_t port);

// Adds --dashboard [PORT].
void add_dashboard_flag(Parser command, std::optional<uint64_t>& port);

// Prints the address, and what is to be said about it.
void announce(const dashboard::Dashboard& dashboard, const std::string& host, uint64_t port, report::Output& out);

}  // namespace quern::cli
