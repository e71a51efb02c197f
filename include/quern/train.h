// Training inside an application.
//
//   const quern::TrainResult result = quern::train_model({
//       .data = {"book.txt"},
//       .out = "runs/book",
//       .settings = {"model.layers=6", "train.precision=bf16"},
//       .steps = 500,
//       .on_step = [](const quern::Step& step) {
//         std::cout << step.step << " of " << step.steps << ": loss " << step.loss << "\n";
//         return true;  // false: save and stop
//       }});
//   const quern::Model model = quern::Model::load(result.path);
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <quern/error.h>

namespace quern {

// A completed step.
struct Step {
  uint64_t step = 0;                      // counted from 1
  uint64_t steps = 0;                     // of the run
  double loss = 0;                        // mean over the step's tokens in nats, before the update
  std::optional<double> validation_loss;  // on held-out text after the step, if measured
  double learning_rate = 0;
  double gradient_norm = 0;  // before clipping
  bool skipped = false;      // no update: the gradient was not finite or the loss spiked
  uint64_t tokens = 0;       // processed by the step
  double seconds = 0;        // excluding validation and saving

  double tokens_per_s() const { return static_cast<double>(tokens) / seconds; }
};

// The settings are those of `quern train`. Each of these overrides the ones before it: preset, config, settings, steps,
// threads, data. `quern train --print-config` explains every setting.
struct TrainOptions {
  std::vector<std::filesystem::path> data = {};  // text files, folders, .jsonl or token shards; none: generated stories
  std::filesystem::path out = {};                // the folder of the run: new or empty, unless `resume`
  std::optional<std::string> preset = {};        // "tiny" (the default), "small", "gpt2", "minute" or "ten-minutes"
  std::filesystem::path config = {};             // a TOML file
  std::vector<std::string> settings = {};        // "model.layers=2"
  std::optional<uint64_t> steps = {};            // train.steps
  size_t threads = 0;                            // 0: as in the settings, by default every core
  bool resume = false;                           // continue the run in `out`
  // Start from the weights of another run and with its settings: a run (its newest checkpoint), RUN@best (the lowest
  // validation loss), RUN@STEP, or the folder of a checkpoint in a run. Excludes `preset` and `resume`.
  std::filesystem::path init_from = {};

  // Called on the training thread after each step and any validation and saving due. If it returns false or throws, the
  // run saves and stops; train_model() then rethrows.
  std::function<bool(const Step&)> on_step = {};
  std::function<void(const std::string& text)> on_warning = {};
  // Called many times a second while text is read and tokenized. Throwing ends training before anything is written.
  std::function<void(std::string_view what, uint64_t done, uint64_t total)> on_preparing = {};
};

struct TrainResult {
  std::filesystem::path path;             // the folder of the run, for Model::load()
  uint64_t step = 0;                      // the last completed step
  bool finished = false;                  // the run is complete; otherwise it can be resumed
  double loss = 0;                        // of the last step of the run; NaN if it had none
  std::optional<double> validation_loss;  // after the last step, if measured
  std::string weights_hash;               // SHA-256 of all weights: equal for equal settings and data
};

// Trains until the last step, or until on_step stops it. The weights are bit-identical to those of `quern train` with
// the same settings, for any number of threads and any number of interruptions. One process at a time trains in a
// folder. On resume, settings that are given are in force from the next step on and recorded in the run's history: runs
// with the same history have the same weights. The model's sizes, the tokenizer, the seed and the sampling cannot
// change; data may have moved. Throws Error before anything is written if the settings or data are unusable.
TrainResult train_model(const TrainOptions& options);

// Every setting of a preset as TOML, with comments: a start for a config file. Error for an unknown name.
std::string preset_config(std::string_view name);

}  // namespace quern
