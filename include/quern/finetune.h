// Fine-tuning inside an application: adapts a trained model to conversations.
//
//   const quern::TrainResult result = quern::finetune({
//       .base = "SmolLM2-135M-Instruct",
//       .data = {"chats.jsonl"},
//       .out = "runs/tuned",
//       .epochs = 3,
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
#include <quern/train.h>

namespace quern {

// The settings are those of `quern finetune`, and so are the defaults of those that are not given. The fields from
// `rank` to `threads` override `settings`.
struct FinetuneOptions {
  // A run (its newest checkpoint), RUN@best, RUN@STEP, the folder of a checkpoint, a Hugging Face folder or a GGUF
  // file. The last two are first imported, into the folder of the run with "-base" at the end of its name.
  std::filesystem::path base = {};
  // JSON Lines with conversations, prompts and completions or text, or folders with train.jsonl and valid.jsonl.
  std::vector<std::filesystem::path> data = {};
  std::filesystem::path out = {};  // the folder of the run: new or empty, unless `resume`
  bool full = false;               // train all weights instead of adapters
  std::string chat_template = {};  // "chatml", or a file with a Jinja template; empty: the model's own

  std::optional<uint64_t> rank = {};      // of the adapters: 16
  std::optional<double> alpha = {};       // their scale is alpha / rank: 32
  std::optional<double> dropout = {};     // of their input: 0
  std::vector<std::string> targets = {};  // layers to adapt, such as {"q_proj", "v_proj"}; empty: all linear layers
  std::optional<uint64_t> epochs = {};    // how often each conversation is used: 1
  std::optional<uint64_t> steps = {};     // number of updates, instead of epochs
  std::optional<double> rate = {};        // learning rate: 2e-4, if `full` 2e-5
  std::optional<uint64_t> batch = {};     // sequences per update: 4
  std::optional<uint64_t> context = {};   // tokens per sequence: 512; longer conversations are cut
  std::optional<uint64_t> seed = {};
  size_t threads = 0;                      // 0: as in the settings, by default every core
  std::vector<std::string> settings = {};  // "train.accumulation=4"
  bool resume = false;                     // continue the run in `out`; excludes base, full and chat_template

  // As in TrainOptions.
  std::function<bool(const Step&)> on_step = {};
  std::function<void(const std::string& text)> on_warning = {};
  std::function<void(std::string_view what, uint64_t done, uint64_t total)> on_preparing = {};
};

// Trains low-rank adapters (LoRA) of a model, or all of its weights, on conversations: of messages, exactly what the
// assistant says. Everything that holds for train_model() holds here: the weights are bit-identical to those of `quern
// finetune` with the same settings, for any number of threads and interruptions. Throws Error before a run is written
// if the base, the settings or the data are unusable.
TrainResult finetune(const FinetuneOptions& options);

}  // namespace quern
