#include "run/run_checkpoints.h"

#include <ranges>

#include "checkpoint/folder.h"
#include "checkpoint/hf_tokenizer.h"
#include "checkpoint/tensor_refs.h"
#include "config/run_folder.h"
#include "core/error.h"
#include "quern/profile.h"

namespace quern::train {
namespace {

namespace fs = std::filesystem;

const Region kCheckpoint("checkpoint");

}  // namespace

RunCheckpoints::RunCheckpoints(const RunConfig& config, const fs::path& folder, nn::LanguageModel& model,
                               Optimizer& optimizer, const data::Tokenizer* tokenizer)
    : config_(config),
      run_(folder),
      model_(model.config()),
      weights_(checkpoint::tensor_refs(model.parameters(), model.weights().values())),
      optimizer_(checkpoint::optimizer_refs(model.parameters(), optimizer)),
      tokenizer_(checkpoint::hf_tokenizer_files(tokenizer, model_.context)) {
  if (tokenizer != nullptr) end_of_text_ = tokenizer->end_of_text();
}

fs::path RunCheckpoints::save(const RunState& state) {
  const Timed timed(kCheckpoint);
  const fs::path folder = run_ / kCheckpointFolder;
  checkpoint::HfConfig config = checkpoint::hf_config(model_, config_.model.dropout);
  config.end_of_text = end_of_text_;
  fs::path path = checkpoint::save(folder, tensors(), state, config, tokenizer_);
  // A checkpoint from an interruption must not displace the target of a rollback.
  if (config_.diagnostics.policy != Policy::kRollback || is_regular(state.step)) {
    checkpoint::remove_old(folder, state.step,
                           {.keep = config_.checkpoint.keep, .keep_best = config_.checkpoint.keep_best});
  }
  saved_step_ = state.step;
  return path;
}

std::optional<RunState> RunCheckpoints::load_newest(const Warn& warn) {
  const auto found = newest_checkpoint(run_, warn, checkpoint::Parts::kAll);
  return found ? std::optional(load(*found)) : std::nullopt;
}

std::optional<RunState> RunCheckpoints::load_newest_regular(const Warn& warn) {
  const fs::path folder = run_ / kCheckpointFolder;
  const std::vector<uint64_t> steps = checkpoint::list_steps(folder);
  for (const uint64_t step : std::views::reverse(steps)) {
    if (!is_regular(step)) continue;
    std::optional<checkpoint::Checkpoint> found;
    try {
      found.emplace(folder / checkpoint::directory_name(step));
    } catch (const Error& error) {
      warn(fmt::format("skipped {}", error.what()));
      continue;
    }
    return load(*found);
  }
  return std::nullopt;
}

RunState RunCheckpoints::load(const checkpoint::Checkpoint& found) {
  found.load(tensors());
  saved_step_ = found.state().step;
  return found.state();
}

bool RunCheckpoints::is_regular(uint64_t step) const {
  return config_.checkpoint.interval > 0 && step % config_.checkpoint.interval == 0;
}

}  // namespace quern::train
