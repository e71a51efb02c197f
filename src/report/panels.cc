#include "report/panels.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "core/files.h"

namespace quern::report {
namespace {

using Json = nlohmann::ordered_json;

struct Line {
  const char* field;
  const char* label;
  const char* style = "line";
  bool smooth = false;
};

Json to_json(const Line& line) {
  Json object = {{"field", line.field}, {"label", line.label}, {"style", line.style}};
  if (line.smooth) object["smooth"] = true;
  return object;
}

// A panel of curves.
Json lines(const char* id, const char* title, const char* unit, const std::vector<Line>& series, const char* help) {
  Json panel = {{"id", id}, {"title", title}, {"kind", "lines"}, {"unit", unit}, {"scale", "linear"}};
  panel["series"] = Json::array();
  for (const Line& line : series) panel["series"].push_back(to_json(line));
  panel["help"] = help;
  return panel;
}

void add_rule(Json& panel, double value, const char* label, const char* series = nullptr) {
  Json rule = {{"value", value}, {"label", label}};
  if (series != nullptr) rule["series"] = series;
  panel["rules"].push_back(std::move(rule));
}

Json loss_panel(const train::RunConfig& config, const PanelFacts& facts) {
  std::vector<Line> series = {{"loss", "training", "line", true}};
  if (!config.is_selfplay()) series.push_back({"validation_loss", "validation", "dots"});
  Json panel = lines("loss", "Loss", config.is_selfplay() ? "nats per position" : "nats per token", series,
                     config.is_selfplay() ? "Of each step, before its update: how far the network is from what search "
                                            "found and how the games ended."
                                          : "Of each step, before its update, and on held-out text. Lower is better.");
  if (facts.floor) add_rule(panel, *facts.floor, "lowest achievable");
  if (facts.loss_parts.size() < 2) return panel;
  for (const std::string& part : facts.loss_parts) {
    panel["series"].push_back({{"field", "loss_parts." + part}, {"label", part}, {"style", "line"}, {"smooth", true}});
  }
  return panel;
}

Json gradient_panel(const train::RunConfig& config) {
  Json panel = lines("gradient", "Gradient norm", "", {{"gradient_norm", "gradient norm", "line", true}},
                     "Over all weights, before clipping. Larger gradients than the line are scaled down to it.");
  panel["scale"] = "log";
  if (config.optimizer.clip > 0) add_rule(panel, config.optimizer.clip, "clip", "gradient_norm");
  return panel;
}

Json health_panel() {
  return {{"id", "health"},
          {"title", "Health of tensors"},
          {"kind", "heatmap"},
          {"field", "health"},
          {"measures",
           {{{"name", "norm"}, {"label", "gradient norm"}, {"scale", "log"}},
            {{"name", "update_ratio"}, {"label", "update / weights"}, {"scale", "log"}}}},
          {"help",
           "Of every tensor: the norm of its gradient, and how far an update moves it. About 1e-3 is usual for the "
           "latter."}};
}

Json operations_panel() {
  return {{"id", "operations"},
          {"title", "Time by operation"},
          {"kind", "table"},
          {"field", "operations"},
          {"help", "Share of the workers' time, measured in one step of every few hundred. Mean over the run."}};
}

void add_selfplay(Json& panels, const train::RunConfig& config) {
  panels.push_back(lines("games", "Games", "per second", {{"selfplay.games_per_s", "games"}},
                         "Games of self-play that ended, of each generation."));
  panels.push_back(lines("positions", "Positions", "per second",
                         {{"selfplay.positions_per_s", "positions"}, {"selfplay.evaluations_per_s", "evaluations"}},
                         "Moves that were played, and positions that the network judged for them."));
  panels.back()["scale"] = "log";
  panels.push_back(lines("results", "Results of games", "share",
                         {{"selfplay.first_wins", "first player wins"}, {"selfplay.draws", "draws"}},
                         "Of the games of each generation."));
  panels.push_back(lines("length", "Length of games", "moves", {{"selfplay.game_length", "mean length"}},
                         "Games become longer when both sides defend, and shorter when one is resigned."));
  if (config.selfplay.rating_interval > 0) {
    panels.push_back(lines("rating", "Rating", "Elo", {{"rating.elo", "rating"}},
                           "By matches of each rated network against the one rated before it; the first has 0."));
  }
}

}  // namespace

Json panels_of(const train::RunConfig& config, const PanelFacts& facts) {
  Json panels = Json::array();
  panels.push_back(loss_panel(config, facts));
  if (config.is_selfplay()) {
    add_selfplay(panels, config);
  } else if (config.log.sample_interval > 0) {
    panels.push_back({{"id", "samples"},
                      {"title", "What the model writes"},
                      {"kind", "text"},
                      {"field", "sample"},
                      {"help", "The same prompt, continued after more and more steps."}});
  }
  panels.push_back(lines("speed", "Speed", config.is_selfplay() ? "squares per second" : "tokens per second",
                         {{"tokens_per_s", "speed", "line", true}}, "Of single steps, without validation and saving."));
  if (config.has_chat()) {
    panels.push_back(lines("targets", "Trained tokens", "tokens per step", {{"targets", "counted targets"}},
                           "The tokens of a step that the assistant said: only these count for the loss."));
  }
  panels.push_back(lines("efficiency", "Efficiency", "share",
                         {{"mfu", "of peak multiply-adds (MFU)", "line", true}, {"busy", "workers busy", "line", true}},
                         "How much of the machine's arithmetic the model gets, and whether its threads have work."));
  panels.push_back(lines("rate", "Learning rate", "", {{"rate", "learning rate"}}, "The schedule, as it was applied."));
  panels.push_back(gradient_panel(config));
  panels.push_back(lines("memory", "Memory", "bytes",
                         {{"memory.resident", "resident"}, {"memory.peak", "peak"}, {"memory.planned", "planned"}},
                         "Of the process. `planned` was known before the first step."));
  panels.push_back(operations_panel());
  if (config.diagnostics.health_interval > 0) panels.push_back(health_panel());
  panels.push_back({{"id", "events"},
                    {"title", "Events"},
                    {"kind", "events"},
                    {"help", "Starts, checkpoints, changes of settings, warnings and incidents."}});
  return panels;
}

std::string data_text(const train::RunConfig& config) {
  if (config.is_selfplay()) return "games of " + config.selfplay.game;
  const std::vector<std::string>& names = config.data.sources.empty() ? config.data.paths : config.data.sources;
  return names.empty() ? "generated short stories" : fmt::format("{}", fmt::join(names, ", "));
}

void write_panels(const std::filesystem::path& folder, const train::RunConfig& config, const PanelFacts& facts) {
  const Json file = {{"version", 1}, {"panels", panels_of(config, facts)}};
  write_file(folder / kPanelsFile, json_text(file, 1) + "\n");
}

}  // namespace quern::report
