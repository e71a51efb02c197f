#include "cli/run_info.h"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <utility>

#include "checkpoint/checkpoint.h"
#include "cli/adapters_text.h"
#include "cli/machine_json.h"
#include "cli/warnings.h"
#include "config/history.h"
#include "config/model_settings.h"
#include "config/run_folder.h"
#include "core/error.h"
#include "core/json.h"
#include "core/text.h"
#include "evaluate/base_model.h"
#include "evaluate/find_checkpoint.h"
#include "evaluate/load.h"
#include "report/numbers.h"

namespace quern::cli {
namespace {

uint64_t count_values(const safetensors::File& file) {
  uint64_t count = 0;
  for (const safetensors::Tensor& tensor : file.tensors()) {
    count += tensor.bytes.size() / safetensors::dtype_bytes(tensor.dtype);
  }
  return count;
}

Json or_null(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }

std::string validation_text(const RunState& state) {
  if (!state.best_validation_loss) return "none yet";
  const std::string last = state.validation_loss ? report::loss_text(*state.validation_loss) : "none at this step";
  return fmt::format("{}, best {} at step {}", last, report::loss_text(*state.best_validation_loss), state.best_step);
}

Json changes_json(const train::RunConfig& config) {
  Json array = Json::array();
  for (const train::RecordedChange& change : train::recorded_changes(config)) {
    Json settings = Json::object();
    for (const train::SettingChange& setting : change.settings) {
      settings[setting.path] = {{"before", setting.before}, {"after", setting.after}};
    }
    array.push_back({{"from_step", change.from_step}, {"settings", settings}});
  }
  return array;
}

// What is shown of a run: its newest checkpoint and, if that has adapters alone, the model that they belong to.
struct Shown {
  std::string folder;
  train::RunConfig config;
  checkpoint::Checkpoint newest;
  std::optional<checkpoint::Checkpoint> base;

  uint64_t trained() const { return count_values(newest.model()); }
  uint64_t parameters() const { return trained() + (base ? count_values(base->model()) : 0); }
  nn::AdapterConfig adapters() const { return train::model_config(config, 0).adapters; }
};

void add_adapters(const Shown& shown, Json& object) {
  if (!shown.base) return;
  object["trainable_parameters"] = shown.trained();
  object["adapters"] = adapters_json(shown.adapters());
  object["base"] = {{"checkpoint", shown.base->path().string()},
                    {"parameters", count_values(shown.base->model())},
                    {"weights_hash", checkpoint::weights_hash(shown.base->model())}};
}

void print_adapters(const Shown& shown) {
  if (!shown.base) return;
  const nn::AdapterConfig adapters = shown.adapters();
  fmt::print("adapters     rank {}, alpha {}{}, dropout {}: {} trainable parameters; layers: {}\n", adapters.rank,
             adapters.alpha, adapters.rank_stabilized ? ", rank-stabilized" : "", adapters.dropout, shown.trained(),
             targets_text(adapters.targets));
  fmt::print("base         {}\n", printable(shown.base->path().string()));
}

Json describe(const Shown& shown) {
  const train::RunConfig& config = shown.config;
  const checkpoint::Checkpoint& newest = shown.newest;
  const RunState& state = newest.state();
  const auto& model = config.model;
  Json object = {{"run", shown.folder},
                 {"step", state.step},
                 {"steps", config.train.steps},
                 {"tokens", state.tokens},
                 {"parameters", shown.parameters()},
                 {"val_loss", or_null(state.validation_loss)},
                 {"best_val_loss", or_null(state.best_validation_loss)},
                 {"best_step", state.best_validation_loss ? Json(state.best_step) : Json(nullptr)},
                 {"weights_hash", checkpoint::weights_hash(newest.model())},
                 {"seed", state.seed},
                 {"init", {{"from", config.init.from}, {"weights_hash", config.init.weights_hash}}},
                 {"changes", changes_json(config)},
                 {"model",
                  {{"layers", model.layers},
                   {"heads", model.heads},
                   {"width", model.width},
                   {"context", model.context},
                   {"dropout", model.dropout},
                   {"variants", train::variants_text(config)}}},
                 {"checkpoint", newest.path().string()}};
  if (config.is_selfplay()) object["game"] = config.selfplay.game;
  add_adapters(shown, object);
  return object;
}

void print_text(const Shown& shown) {
  const train::RunConfig& config = shown.config;
  const checkpoint::Checkpoint& newest = shown.newest;
  const RunState& state = newest.state();
  const auto& model = config.model;
  if (config.is_selfplay()) {
    fmt::print("game         {}\n", config.selfplay.game);
    fmt::print("step         {} of {}, {} positions seen\n", state.step, config.train.steps,
               state.tokens / model.context);
  } else {
    fmt::print("step         {} of {}, {} tokens seen\n", state.step, config.train.steps, state.tokens);
  }
  if (!config.init.from.empty()) fmt::print("started from {}\n", printable(config.init.from));
  for (const train::RecordedChange& change : train::recorded_changes(config)) {
    fmt::print("change       {}\n", printable(train::to_text(change)));
  }
  const std::string variants = train::variants_text(config);
  fmt::print("model        {} parameters: {} layers, {} heads, width {}, context {}{}{}\n", shown.parameters(),
             model.layers, model.heads, model.width, model.context, variants.empty() ? "" : "; ", variants);
  print_adapters(shown);
  if (!config.is_selfplay()) fmt::print("validation   {}\n", validation_text(state));
  fmt::print("weights hash {}\n", checkpoint::weights_hash(newest.model()));
  fmt::print("checkpoint   {}\n", newest.path().string());
}

}  // namespace

void print_run_info(const std::string& folder, bool json) {
  const auto [run, chosen] = train::find_checkpoint(folder, {});
  train::RunConfig config = train::read_config(run);
  auto found = chosen ? std::optional(checkpoint::Checkpoint(*chosen, checkpoint::Parts::kWeights))
                      : train::newest_checkpoint(run, warn, checkpoint::Parts::kWeights);
  if (!found) throw Error("[run] {}: expected a checkpoint, found none; train it first", folder);
  std::optional<checkpoint::Checkpoint> base;
  if (config.is_adapted()) base = train::open_base(run);
  const Shown shown{run.string(), std::move(config), std::move(*found), std::move(base)};
  if (json) {
    fmt::print("{}\n", json_text(describe(shown), 2));
  } else {
    print_text(shown);
  }
}

}  // namespace quern::cli
