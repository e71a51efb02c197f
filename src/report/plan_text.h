// A plan for people.
#pragma once

#include <cstdint>
#include <string>

#include "train/plan.h"

namespace quern::report {

// What was chosen, and why where a limit forced it: one line without a line break.
std::string plan_summary(const train::Plan& plan, const train::RunConfig& config);

// The bytes by purpose, a line each, and their total.
std::string plan_table(const train::Plan& plan, const train::RunConfig& config);

}  // namespace quern::report
