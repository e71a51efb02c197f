// Human-readable plans.
#pragma once

#include <cstdint>
#include <string>

#include "train/plan.h"

namespace quern::report {

// The choices, with the reason if a limit forced them: one line without a line break.
std::string plan_summary(const train::Plan& plan, const train::RunConfig& config);

// Memory by purpose, one line each, and the total.
std::string plan_table(const train::Plan& plan, const train::RunConfig& config);

}  // namespace quern::report
