// state.json: what a run has to save in addition to its tensors.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "checkpoint/safetensors.h"
#include "optim/loss_trend.h"

namespace quern::checkpoint {

// A position in text that is tokenized while it is read: data/batch_reader.h.
struct StreamPosition {
  uint64_t piece = 0;
  uint64_t token = 0;
  bool operator==(const StreamPosition&) const = default;
};

// Limit for steps done and for steps skipped: their sum, the step used for random numbers, has 32 bits.
inline constexpr uint64_t kMaxSteps = INT32_MAX;

// Together with the config and the tensors, everything that the next step depends on. Random numbers are a function of
// the seed and the step (core/philox.h), so these two are the state of the generator.
struct State {
  uint64_t step = 0;           // optimizer steps done
  uint64_t tokens = 0;         // trained on so far
  uint64_t seed = 0;           // of the run
  uint64_t data_position = 0;  // what the batch source needs to resume: number of sequences drawn so far
  std::string precision = "fp32";
  uint64_t updates = 0;                        // steps done whose update was not skipped
  double loss_scale = 1;                       // of the gradient; differs from 1 only in fp16 files of older versions
  std::optional<double> validation_loss;       // of these weights; nullopt if not measured at this step
  std::optional<double> best_validation_loss;  // of the run so far
  uint64_t best_step = 0;                      // the step of that loss
  uint64_t data_tokens = 0;                    // number of tokens in the run's data, including held-out ones; bytes for
                                               // a stream
  uint64_t data_hash = 0;                      // hash of these
  uint64_t incidents = 0;                      // skipped or rolled back so far
  uint64_t left_out = 0;                       // steps whose data was skipped when the run rolled back
  LossTrend losses = {};                       // baseline for detecting spikes
  std::optional<StreamPosition> stream = {};   // where the next step begins; nullopt if the data is not a stream

  bool operator==(const State&) const = default;
};

struct StateFile {
  State state;
  std::map<std::string, safetensors::Stamp> files;  // by name: expected size and hash of the checkpoint's other files
};

// Sorted keys, indented for readability. Contains a checksum of itself. A loss that is not finite is stored as null.
std::string to_json(const StateFile& file);

// Throws Error, with `name` as the location, if anything is missing, has the wrong type or is out of range, or if the
// checksum differs.
StateFile parse_state(std::string_view json, std::string_view name);

}  // namespace quern::checkpoint
