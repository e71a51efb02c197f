// What a run has to remember beside its tensors: state.json.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "checkpoint/safetensors.h"
#include "optim/loss_trend.h"

namespace quern::checkpoint {

// A place in text that is tokenised while it is read: data/batch_reader.h.
struct StreamPosition {
  uint64_t piece = 0;
  uint64_t token = 0;
  bool operator==(const StreamPosition&) const = default;
};

// Of steps done and of steps left out: their sum, the step of the random numbers, has 32 bits.
inline constexpr uint64_t kMaxSteps = INT32_MAX;

// Together with the config and the tensors, all that the next step depends on. Random numbers are a function of the
// seed and the step (core/philox.h), so these two are the state of the generator.
struct State {
  uint64_t step = 0;           // optimizer steps done
  uint64_t tokens = 0;         // trained on so far
  uint64_t seed = 0;           // of the run
  uint64_t data_position = 0;  // what the batch source wants to be told to go on: sequences drawn so far
  std::string precision = "fp32";
  uint64_t updates = 0;                        // steps done whose update was not left out
  double loss_scale = 1;                       // of the gradient; another number only in fp16 files of older versions
  std::optional<double> validation_loss;       // of these weights; none when not measured at this step
  std::optional<double> best_validation_loss;  // of the run so far
  uint64_t best_step = 0;                      // where that was
  uint64_t data_tokens = 0;                    // all tokens of the run's data, held-out ones too; bytes of a stream
  uint64_t data_hash = 0;                      // of them
  uint64_t incidents = 0;                      // skipped or rolled back so far
  uint64_t left_out = 0;                       // steps whose data was passed over when the run rolled back
  LossTrend losses = {};                       // what a spike is measured against
  std::optional<StreamPosition> stream = {};   // where the next step begins; none when the data is no stream

  bool operator==(const State&) const = default;
};

struct StateFile {
  State state;
  std::map<std::string, safetensors::Stamp> files;  // by name: what the other files of the checkpoint must be
};

// Sorted keys, indented, for people too. Carries a checksum of itself. A loss that is not finite becomes none.
std::string to_json(const StateFile& file);

// Error, with `name` as the place, when anything is missing, of another type, out of range, or the checksum differs.
StateFile parse_state(std::string_view json, std::string_view name);

}  // namespace quern::checkpoint
