#include "cli/run_info.h"

#include <fmt/format.h>

#include <optional>

#include "checkpoint/checkpoint.h"
#include "cli/machine_json.h"
#include "cli/warnings.h"
#include "config/history.h"
#include "config/model_settings.h"
#include "config/run_folder.h"
#include "core/error.h"
#include "core/json.h"
#include "core/text.h"
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

Json describe(const std::string& folder, const train::RunConfig& config, const checkpoint::Checkpoint& newest) {
  const RunState& state = newest.state();
  const auto& model = config.model;
  return {{"run", folder},
          {"step", state.step},
          {"steps", config.train.steps},
          {"tokens", state.tokens},
          {"parameters", count_values(newest.model())},
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
}

void print_text(const train::RunConfig& config, const checkpoint::Checkpoint& newest) {
  const RunState& state = newest.state();
  const auto& model = config.model;
  fmt::print("step         {} of {}, {} tokens seen\n", state.step, config.train.steps, state.tokens);
  if (!config.init.from.empty()) fmt::print("started from {}\n", printable(config.init.from));
  for (const train::RecordedChange& change : train::recorded_changes(config)) {
    fmt::print("change       {}\n", printable(train::to_text(change)));
  }
  const std::string variants = train::variants_text(config);
  fmt::print("model        {} parameters: {} layers, {} heads, width {}, context {}{}{}\n",
             count_values(newest.model()), model.layers, model.heads, model.width, model.context,
             variants.empty() ? "" : "; ", variants);
  fmt::print("validation   {}\n", validation_text(state));
  fmt::print("weights hash {}\n", checkpoint::weights_hash(newest.model()));
  fmt::print("checkpoint   {}\n", newest.path().string());
}

}  // namespace

void print_run_info(const std::string& folder, bool json) {
  const auto [run, chosen] = train::find_checkpoint(folder, {});
  const train::RunConfig config = train::read_config(run);
  const auto found = chosen ? std::optional(checkpoint::Checkpoint(*chosen, checkpoint::Parts::kWeights))
                            : train::newest_checkpoint(run, warn, checkpoint::Parts::kWeights);
  if (!found) throw Error("[run] {}: expected a checkpoint, found none; train it first", folder);
  if (json) {
    fmt::print("{}\n", json_text(describe(run.string(), config, *found), 2));
  } else {
    print_text(config, *found);
  }
}

}  // namespace quern::cli
