// The state of a run, and state.json, which saves it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "checkpoint/safetensors.h"
#include "data/batch_reader.h"
#include "data/fingerprint.h"
#include "optim/loss_trend.h"

namespace quern {

// Together with the config and the tensors, everything that the next step depends on, and what a run reports about
// itself. The trainer advances the first group in every step; the run does the rest. Random numbers are a function of
// the seed and the step (core/philox.h), so these two are the state of the generator.
//
// To add a field, add a member here and a row to the table in state.cc.
struct RunState {
  uint64_t step = 0;                                // optimizer steps done
  uint64_t updates = 0;                             // steps done whose update was not skipped
  uint64_t tokens = 0;                              // trained on so far
  uint64_t data_position = 0;                       // sequences drawn so far
  std::optional<data::StreamPosition> stream = {};  // where the next step begins; nullopt if the data is not a stream
  LossTrend losses = {};                            // baseline for detecting spikes
  std::optional<double> loss = {};                  // of the last step; nullopt before the first, and in older files

  uint64_t seed = 0;
  std::string precision = "fp32";
  double loss_scale = 1;                       // of the gradient; differs from 1 only in fp16 files of older versions
  data::Fingerprint data = {};                 // of the run's data, including held-out tokens
  uint64_t incidents = 0;                      // skipped or rolled back so far
  uint64_t skipped_steps = 0;                  // steps whose data was skipped when the run rolled back
  std::optional<double> validation_loss = {};  // of these weights; nullopt if not measured at this step
  std::optional<double> best_validation_loss = {};  // of the run so far
  uint64_t best_step = 0;                           // the step of that loss

  // The number by which the next step chooses its data and random numbers.
  uint32_t next_data_step() const { return static_cast<uint32_t>(step + skipped_steps); }

  // Counts the data of another step.
  void count_data(uint64_t sequences, uint64_t context) {
    data_position += sequences;
    tokens += sequences * context;
  }

  bool operator==(const RunState&) const = default;
};

}  // namespace quern

namespace quern::checkpoint {

// Limit for steps done and for steps skipped: their sum, the step used for random numbers, has 32 bits.
inline constexpr uint64_t kMaxSteps = INT32_MAX;

struct StateFile {
  RunState state;
  std::map<std::string, safetensors::Stamp> files;  // by name: expected size and hash of the checkpoint's other files
};

// Sorted keys, indented for readability. Contains a checksum of itself. A loss that is not finite is stored as null.
std::string to_json(const StateFile& file);

// Throws Error, with `name` as the location, if anything is missing, has the wrong type or is out of range, or if the
// checksum differs.
StateFile parse_state(std::string_view json, std::string_view name);

}  // namespace quern::checkpoint
