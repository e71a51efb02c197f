// What the page shows, as JSON. docs/dashboard.md describes it.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "dashboard/watched_run.h"

namespace quern::dashboard {

enum class Axis : uint8_t { kStep, kTokens, kTime };

struct ViewOptions {
  Axis axis = Axis::kStep;
  std::optional<double> from = {}, to = {};  // the range of that axis: steps, tokens or seconds
  size_t points = 2000;                      // of a curve, about
  size_t heat_columns = 160;                 // of a heat map
  size_t texts = RunData::kMaxTexts;
  size_t events = RunData::kMaxEvents;
  std::string run = {};  // the id of one run; empty: all
};

// `version`: that of the program.
std::string view_json(std::span<const std::unique_ptr<WatchedRun>> runs, const ViewOptions& options,
                      std::string_view version);

}  // namespace quern::dashboard
