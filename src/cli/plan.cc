// quern plan: shows how much memory a run would use.
#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "cli/commands.h"
#include "cli/config_options.h"
#include "cli/machine_json.h"
#include "config/data_sources.h"
#include "core/json.h"
#include "core/process_memory.h"
#include "data/tokenizer.h"
#include "dataset/dataset.h"
#include "report/plan_text.h"
#include "train/plan.h"

namespace quern::cli {
namespace {

struct Options {
  ConfigOptions config;
  bool json = false;
};

constexpr const char* kExamples = R"(Examples:
  quern plan --preset gpt2                         break down the memory use of a run
  quern plan --preset gpt2 --memory 2200M          find the fastest plan within a limit
  quern plan --preset small --layers 24 --context 512 --precision bf16 --recompute sqrt

`quern train` accepts the same flags, follows the plan, and reports the actual memory use at the end.)";

// Properties of the data, estimated from the config without reading it.
struct Guess {
  uint32_t vocabulary;
  bool assumed;    // whether the vocabulary is an assumption
  uint64_t bytes;  // of the tokens
};

uint64_t text_bytes(const train::RunConfig& config) {
  if (config.data.paths.empty() && config.data.sources.empty()) return config.data.stories_bytes;
  uint64_t bytes = 0;
  for (const train::WeightedSource& source : train::weighted_sources(config)) {
    for (const std::string& path : source.paths) {
      std::error_code code;
      const uint64_t size = std::filesystem::file_size(path, code);
      if (!code) bytes += size;
    }
  }
  return bytes;
}

Guess guess_data(const train::RunConfig& config) {
  constexpr uint32_t kCharacters = 96;      // in plain English, roughly
  constexpr uint64_t kBytesPerPiece = 4;    // in English, roughly
  constexpr uint32_t kShortTokens = 65536;  // two bytes each up to here
  const bool bpe = config.data.tokenizer == train::TokenizerKind::kBpe;
  uint64_t vocabulary = kCharacters;
  if (config.data.tokenizer == train::TokenizerKind::kByte) vocabulary = 256;
  if (bpe) vocabulary = config.data.vocabulary;
  if (const auto file = train::given_tokenizer(config); !file.empty()) {
    vocabulary = static_cast<uint64_t>(data::Tokenizer::load(file.string())->vocabulary_size());
  }
  if (config.model.vocabulary != 0) vocabulary = config.model.vocabulary;
  const uint64_t tokens = text_bytes(config) / (bpe ? kBytesPerPiece : 1);
  return {.vocabulary = static_cast<uint32_t>(vocabulary),
          .assumed = config.model.vocabulary == 0 && config.data.tokenizer == train::TokenizerKind::kChar,
          .bytes = tokens * (vocabulary <= kShortTokens ? 2 : 4)};
}

Json to_json(const train::Plan& plan, const Guess& guess) {
  const train::MemoryPlan& m = plan.memory;
  return {{"threads", plan.threads},
          {"workers", m.workers},
          {"micro_batch_sequences", plan.cut.micro_batch_size},
          {"micro_batches", plan.cut.micro_batches},
          {"layers_at_once", plan.interval},
          {"logit_rows", plan.logit_rows},
          {"weights_packed", plan.packed},
          {"expected_time", plan.time},
          {"vocabulary", guess.vocabulary},
          {"bytes",
           {{"program_and_data", m.program},
            {"weights", m.weights},
            {"packed_weights", m.packed},
            {"gradient", m.gradient},
            {"moments", m.moments},
            {"optimizer_scratch", m.update},
            {"batches", m.batches},
            {"activations_per_worker", m.worker.activations},
            {"working_per_worker", m.worker.working},
            {"logits_per_worker", m.worker.logits},
            {"total", m.total()}}}};
}

int run_plan(const Options& options) {
  const train::RunConfig config = config_of(options.config);
  const Guess guess = guess_data(config);
  const train::Plan plan = train::make_plan(config, guess.vocabulary, resident_bytes() + guess.bytes);
  if (options.json) {
    fmt::print("{}\n", json_text(to_json(plan, guess), 2));
    return 0;
  }
  const auto& model = config.model;
  fmt::print("{} layers, {} heads, width {}, context {}, vocabulary {}{}; batch {}\n", model.layers, model.heads,
             model.width, model.context, guess.vocabulary, guess.assumed ? " (assumed)" : "", config.train.batch);
  fmt::print("{}\n{}", report::plan_summary(plan, config), report::plan_table(plan, config));
  return 0;
}

}  // namespace

Command add_plan(Parser root) {
  const auto options = std::make_shared<Options>();
  Parser plan = root.add_command("plan", "Show the memory a run would use, and the fastest plan within a limit");
  add_config_options(plan, options->config);
  plan.add_flag("--json", options->json, "Print one JSON object");
  plan.set_footer(kExamples);
  return {plan, [options] { return run_plan(*options); }};
}

}  // namespace quern::cli
