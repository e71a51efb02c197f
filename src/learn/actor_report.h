// What an actor process writes to its standard output: a line with its counters so far.
#pragma once

#include <optional>
#include <string>

#include "learn/totals.h"

namespace quern::learn {

std::string actor_report(const Totals& totals);
// nullopt if it is not such a line.
std::optional<Totals> parse_actor_report(const std::string& line);

}  // namespace quern::learn
