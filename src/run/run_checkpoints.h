// Saving a run, and returning to what was saved.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "config/config.h"
#include "data/tokenizer.h"
#include "evaluate/load.h"
#include "nn/models/language_model.h"
#include "optim/optimizer.h"
#include "run/ranked_states.h"

namespace quern::train {

class RunCheckpoints {
 public:
  // `config`, that of the run with its history, `model` and `optimizer` must outlive this object. `folder` is that of
  // the run. `tokenizer`, null if there is none, is saved with every checkpoint, and so are the run's files of
  // formats/model_files.h, so that Hugging Face tools can use its directory.
  RunCheckpoints(const RunConfig& config, const std::filesystem::path& folder, nn::LanguageModel& model,
                 Optimizer& optimizer, const data::Tokenizer* tokenizer, const RunRanks& ranks);

  // Saves weights, moments and `state`, and removes old checkpoints. Returns the new one. Like load(), called by all
  // ranks: the first one writes, and it exists when the call returns. If that fails, all of them throw.
  std::filesystem::path save(const RunState& state);

  // The checkpoint of a step. Error if there is none.
  checkpoint::Checkpoint open(uint64_t step) const;
  // The newest one whose existence does not depend on interruptions, for a rollback: of a regular interval, from before
  // a change of settings, or of the beginning. nullopt if there is none.
  std::optional<checkpoint::Checkpoint> newest_regular(const Warn& warn) const;
  // Loads weights and moments.
  void load(const checkpoint::Checkpoint& found);

  // Whether the newest checkpoint, or the one that was loaded last, is of this step.
  bool is_saved(uint64_t step) const { return saved_step_ == step; }
  void forget() { saved_step_.reset(); }

  // All tensors; with several ranks, rank 0 may save them once while the others call send_states(), and must then
  // call finish_states().
  void send_states() { states_.send(); }
  void finish_states() { states_.finish(); }
  checkpoint::Tensors tensors() const { return {weights_, states_.refs(), config_.is_adapted()}; }

 private:
  bool is_regular(uint64_t step) const;
  void write(const RunState& state, const std::filesystem::path& folder);

  const RunConfig& config_;
  std::filesystem::path run_;
  const nn::ModelConfig& model_;
  const RunRanks& ranks_;
  std::vector<checkpoint::TensorRef> weights_;
  RankedStates states_;
  const data::Tokenizer* tokenizer_;
  std::optional<uint64_t> saved_step_;
};

}  // namespace quern::train
