#include "run/run_checkpoints.h"

#include <algorithm>

#include "checkpoint/folder.h"
#include "checkpoint/tensor_refs.h"
#include "config/history.h"
#include "config/run_folder.h"
#include "core/error.h"
#include "formats/hf_tokenizer.h"
#include "formats/model_files.h"
#include "formats/peft.h"
#include "quern/profile.h"

namespace quern::train {
namespace {

namespace fs = std::filesystem;

const Region kCheckpoint("checkpoint");

}  // namespace

RunCheckpoints::RunCheckpoints(const RunConfig& config, const fs::path& folder, nn::LanguageModel& model,
                               Optimizer& optimizer, const data::Tokenizer* tokenizer, const RunRanks& ranks)
    : config_(config),
      run_(folder),
      model_(model.config()),
      ranks_(ranks),
      weights_(checkpoint::weight_refs(model)),
      states_(ranks, model.parameters(), optimizer),
      tokenizer_(tokenizer) {}

fs::path RunCheckpoints::save(const RunState& state) {
  const Timed timed(kCheckpoint);
  const fs::path folder = run_ / kCheckpointFolder;
  std::exception_ptr failure;
  if (ranks_.writes()) {
    try {
      write(state, folder);
    } catch (const Error&) {
      failure = std::current_exception();
    }
    states_.finish();
  } else {
    states_.send();
  }
  if (const std::exception_ptr agreed = ranks_.agreed(failure)) std::rethrow_exception(agreed);
  saved_step_ = state.step;
  return folder / checkpoint::directory_name(state.step);
}

void RunCheckpoints::write(const RunState& state, const fs::path& folder) {
  const RunConfig now = config_at(config_, state.step);
  const std::vector<checkpoint::ExtraFile> files = formats::read_model_files(run_);
  const formats::HfConfig config{.model = model_,
                                 .dropout = now.model.dropout,
                                 .tokens = formats::special_tokens(files, tokenizer_, model_.vocabulary)};
  std::vector<checkpoint::ExtraFile> extras = formats::hf_tokenizer_files(tokenizer_, model_.positions_limit(), files);
  if (config_.is_adapted()) extras.push_back(formats::peft_config_file(model_, config_.init.from));
  checkpoint::save(folder, tensors(), state, formats::to_json(config), extras);
  // A checkpoint from an interruption must not displace the target of a rollback.
  if (now.diagnostics.policy != Policy::kRollback || is_regular(state.step)) {
    checkpoint::remove_old(folder, state.step, {.keep = now.checkpoint.keep, .keep_best = now.checkpoint.keep_best});
  }
}

checkpoint::Checkpoint RunCheckpoints::open(uint64_t step) const {
  return checkpoint::Checkpoint(run_ / kCheckpointFolder / checkpoint::directory_name(step));
}

std::optional<checkpoint::Checkpoint> RunCheckpoints::newest_regular(const Warn& warn) const {
  std::vector<uint64_t> steps = checkpoint::list_steps(run_ / kCheckpointFolder);
  std::reverse(steps.begin(), steps.end());
  for (const uint64_t step : steps) {
    if (!is_regular(step)) continue;
    try {
      return open(step);
    } catch (const Error& error) {
      warn(fmt::format("skipped {}", error.what()));
    }
  }
  return std::nullopt;
}

void RunCheckpoints::load(const checkpoint::Checkpoint& found) {
  found.load(tensors());
  states_.release_foreign();
  saved_step_ = found.state().step;
}

bool RunCheckpoints::is_regular(uint64_t step) const {
  const uint64_t interval = config_at(config_, step).checkpoint.interval;
  return step == 0 || (interval > 0 && step % interval == 0) || next_change(config_, step) == step + 1;
}

}  // namespace quern::train
