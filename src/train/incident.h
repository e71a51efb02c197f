// The flight recorder: a step that went wrong, saved so that it can be repeated bit for bit.
//
//   incidents/step-00000042/  a checkpoint from before the step (checkpoint/checkpoint.h; its state names the step
//   itself)
//                             and beside it
//                   incident.json        what happened
//                   batch.safetensors    inputs and targets, int32 (sequences, context)
//                   run.toml             the run's config
//
// Complete or absent, and every file has its SHA-256 in state.json.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "checkpoint/checkpoint.h"
#include "nn/model_config.h"
#include "nn/parameters.h"
#include "train/config.h"
#include "train/observer.h"
#include "train/trainer.h"

namespace quern::train {

struct Incident {
  uint64_t step = 0;  // counted from 1
  Trouble trouble = Trouble::kNone;
  double loss = 0, gradient_norm = 0, spike_z = 0;
  std::string gradient_hash = {};  // gradient_hash() of the step
  double gradient_scale = 1;       // that the hash is of so many times the gradient: fp16 in files of older versions
  TrainerState before = {};        // what the step began with
  Findings findings = {};          // where it is not finite
  uint64_t worst_sequence = 0;     // the one with the highest loss, or the first that is not finite; counted from 0
  double worst_loss = 0;           // its mean over tokens
  std::string target = {};         // vector target that it was computed with
};

// SHA-256 over the values of all tensors in their order, each NaN as one and the same: which NaN it is depends on the
// order of operands, which the compiler may choose.
// `scale` multiplies the values first.
std::string gradient_hash(const ParameterLayout& layout, std::span<const float> values, double scale = 1);

// A number as text that reads back the same; "nan" whatever its bits.
std::string number_text(double value);

// "the loss is NaN; first NaN: h.0.attn.c_attn, sequence 3 of 16, micro-batch 1 of 4": one line for people.
std::string describe(const Incident& incident, uint64_t sequences, uint64_t at_once);
std::string_view trouble_name(Trouble trouble);  // "loss", "gradient", "spike"

// What a step depends on beside an Incident.
struct StepRecord {
  const RunConfig& config;
  const ModelConfig& model;
  checkpoint::Tensors tensors;  // weights and moments before the step
  const StepTokens& tokens;
  checkpoint::State state;  // of the run; its step is overwritten
};

// Writes `folder`/step-NNNNNNNN and returns its path. On Error nothing new is left behind.
std::filesystem::path save_incident(const std::filesystem::path& folder, const Incident& incident,
                                    const StepRecord& record);

// One that was read, with every file checked. Weights and moments stay in `checkpoint` until they are loaded.
struct RecordedIncident {
  Incident incident;
  RunConfig config;
  uint32_t vocabulary = 0;
  StepTokens tokens;
  checkpoint::Checkpoint checkpoint;
};

// `path`: the directory, or a file in it. Error names the file, the place, what was expected and what was found.
RecordedIncident load_incident(std::filesystem::path path);

}  // namespace quern::train
