// panels.json: what the dashboard shows of a run, described by the run itself. docs/formats.md has the format.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "config/config.h"
#include "core/json.h"

namespace quern::report {

inline constexpr const char* kPanelsFile = "panels.json";

// What the panels depend on besides the settings.
struct PanelFacts {
  std::optional<double> floor = {};          // lowest expected loss on unseen text
  std::vector<std::string> loss_parts = {};  // two or more, if the loss has parts
};

// The panels of a run, by its kind: language, fine-tuning or self-play.
nlohmann::ordered_json panels_of(const train::RunConfig& config, const PanelFacts& facts);

// What a run trains on, in a few words: its files, its game, or that the text is generated.
std::string data_text(const train::RunConfig& config);

// Replaces the panels.json of the run in `folder` atomically. Error if it cannot be written.
void write_panels(const std::filesystem::path& folder, const train::RunConfig& config, const PanelFacts& facts);

}  // namespace quern::report
