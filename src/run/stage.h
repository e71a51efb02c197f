// A part of a run with the same settings: everything that is made from them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>

#include "checkpoint/state.h"
#include "config/config.h"
#include "data/batch_reader.h"
#include "dataset/dataset.h"
#include "diagnose/health.h"
#include "nn/models/language_model.h"
#include "run/run_checkpoints.h"
#include "run/run_ranks.h"
#include "run/samples.h"
#include "run/validation.h"
#include "train/plan.h"
#include "train/trainer.h"

namespace quern::train {

// What does not change during a run. All of it must outlive the stage.
struct StageContext {
  const RunConfig& config;  // with its history
  const std::filesystem::path& folder;
  const Dataset& dataset;
  uint64_t program_bytes;  // resident before the first stage, for the plan
  const RunRanks& ranks;
};

// Weights and moments are not initialised.
struct Stage {
  // The stage of the step after `state`, which must outlive this object.
  Stage(const StageContext& run, RunState& state);
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;

  bool contains(uint64_t step) const { return step >= first_step && step <= last_step; }

  const RunConfig config;  // in force; without a history
  const uint64_t first_step, last_step;
  const Plan plan;
  const std::unique_ptr<data::BatchSource> batches;
  const std::unique_ptr<nn::LanguageModel> model;
  const Samples samples;
  const Validation validation;  // before the trainer: its threads may still be reading when a failed one ends the run
  Trainer trainer;
  RunCheckpoints checkpoints;
  Health health;
};

}  // namespace quern::train
