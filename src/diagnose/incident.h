// Records a failed step so that it can be repeated bit for bit.
//
// clang-format off
//   incidents/step-00000042/
//     (checkpoint files)   state before the step (checkpoint/checkpoint.h); its step number is that of the step
//     incident.json        what happened
//     batch.safetensors    inputs and targets, int32 (sequences, context); positions, if sequences have documents
//     run.toml             the run's config
// clang-format on
//
// The directory is complete or absent, and state.json contains the SHA-256 of every file. Of a run with adapters, the
// checkpoint has those alone; the model that they belong to is in the run's directory (evaluate/base_model.h).
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "checkpoint/checkpoint.h"
#include "config/config.h"
#include "diagnose/repeat_step.h"
#include "nn/models/model_config.h"
#include "nn/parameter_table.h"
#include "train/step_report.h"

namespace quern::train {

struct Incident {
  uint64_t step = 0;  // counted from 1
  Trouble trouble = Trouble::kNone;
  double loss = 0, gradient_norm = 0, spike_z = 0;
  std::string gradient_hash = {};  // gradient_hash() of the step
  RunState before = {};            // state before the step; the gradient was multiplied by its loss_scale for the hash
  Findings findings = {};          // the first values that are not finite
  uint64_t worst_sequence = 0;     // the one with the highest loss, or the first that is not finite; counted from 0
  double worst_loss = 0;           // its mean over targets that count
  std::string target = {};         // vector target of the computation
};

// SHA-256 over the values of all tensors in layout order, multiplied by `scale`. All NaNs hash the same, because their
// bits depend on the order of operands, which the compiler may choose.
std::string gradient_hash(const nn::ParameterTable& layout, std::span<const float> values, double scale = 1);

// A number as text that parses to the same value; "nan" for every NaN.
std::string number_text(double value);

// What happened in the last step of `context`, which must be an incident with these tokens. Weights and moments must be
// those before it. Overwrites the gradient, as examine() does, unless the loss spiked.
Incident examine_incident(const StepContext& context, const StepReport& step, const StepTokens& tokens);

// One line for messages: "the loss is NaN; first NaN: h.0.attn.c_attn, sequence 3 of 16, micro-batch 1 of 4".
std::string describe(const Incident& incident, const StepCut& cut);
std::string_view trouble_name(Trouble trouble);  // "loss", "gradient", "spike"

// Everything else needed to repeat the step of an Incident.
struct StepRecord {
  const RunConfig& config;
  const nn::ModelConfig& model;
  checkpoint::Tensors tensors;  // weights and moments before the step
  const StepTokens& tokens;
};

// Writes `folder`/step-NNNNNNNN and returns its path. Leaves no new files behind on Error.
std::filesystem::path save_incident(const std::filesystem::path& folder, const Incident& incident,
                                    const StepRecord& record);

// A loaded incident whose files have all been verified. Weights and moments stay in `checkpoint` until they are loaded.
struct RecordedIncident {
  Incident incident;
  RunConfig config;
  uint32_t vocabulary = 0;
  StepTokens tokens;
  checkpoint::Checkpoint checkpoint;
  std::optional<checkpoint::Checkpoint> base = {};  // of a run with adapters
};

// `path` is the directory, inside that of its run, or a file in it. Error names the file, the location, and the
// expected and found values.
RecordedIncident load_incident(std::filesystem::path path);

}  // namespace quern::train
