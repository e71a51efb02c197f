// quern import: makes a run of a model that another program has trained.
#include <fmt/format.h>

#include <memory>
#include <string>

#include "cli/adapters_text.h"
#include "cli/commands.h"
#include "cli/machine_json.h"
#include "cli/progress.h"
#include "cli/warnings.h"
#include "core/byte_size.h"
#include "core/error.h"
#include "core/json.h"
#include "core/text.h"
#include "evaluate/import_adapters.h"
#include "formats/import.h"

namespace quern::cli {
namespace {

struct Options {
  std::string source;
  std::string run;
  std::string base;
  uint64_t context = 0;
  bool json = false;
};

constexpr const char* kExamples = R"(Examples:
  quern import SmolLM2-135M --run runs/smol            a Hugging Face folder: config.json, *.safetensors, tokenizer.json
  quern import model.gguf --run runs/smol              a GGUF file of llama.cpp: F32, F16, BF16, Q8_0, Q4_0, Q4_1
  quern import SmolLM2-135M --run runs/smol --context 2048
  quern import pirate-lora --base runs/smol --run runs/pirate     adapters: a folder of Hugging Face PEFT

Then:
  quern generate --run runs/smol --prompt "Once upon a time"
  quern eval runs/smol book.txt
  quern train --from runs/smol book.txt --run runs/tuned --steps 200
  quern export --run runs/smol --to gguf --dtype q8_0 smol.gguf

Models of type gpt2, llama, qwen2 and qwen3, as on the Hugging Face Hub or as written by llama.cpp's converter. Weights
become fp32; those of F32, F16 and BF16 keep their values exactly. A setting that Quern does not support is an error
with its name. The run is complete or absent; an existing one is never replaced. --context is the length of sequences in
training and evaluation, by default that of the model, but at most 1024.

Adapters (LoRA) need the run of the model that they were trained for, which stays as it is: its files are linked, not
copied, where possible. The new run generates and evaluates with the adapters; quern export --merge makes one model of
both.)";

std::string heads_text(const nn::ModelConfig& model) {
  if (model.is_gpt2()) return fmt::format("{} heads", model.heads);
  return fmt::format("{} heads of {}, {} of keys and values", model.heads, model.head_dim(), model.key_heads());
}

void print_adapters(const Options& options, const formats::Imported& found) {
  const nn::AdapterConfig& adapters = found.model.adapters;
  fmt::print("adapters     rank {}, alpha {}, {} parameters; layers: {}\n", adapters.rank, adapters.alpha,
             found.parameters, targets_text(adapters.targets));
  fmt::print("base         {}: {}\n", printable(options.base), train::family_name(found.model.family));
}

void print_text(const Options& options, const formats::Imported& found) {
  const nn::ModelConfig& model = found.model;
  if (model.adapters.rank > 0) {
    print_adapters(options, found);
  } else {
    fmt::print("model        {}, {} parameters\n", train::family_name(model.family), found.parameters);
  }
  fmt::print("size         {} layers x width {}, {}, inner width {}\n", model.layers, model.width, heads_text(model),
             model.inner());
  fmt::print("context      {} for training, at most {}\n", model.context, model.positions_limit());
  fmt::print("vocabulary   {} rows; tokenizer: {}{}\n", model.vocabulary,
             found.tokenizer.empty() ? "none" : found.tokenizer, found.has_chat_template ? "; chat template" : "");
  fmt::print("from         {}: {}, {}\n", printable(options.source), found.format, found.type);
  fmt::print("weights hash {}\n", found.weights_hash);
  fmt::print("run          {}\n", printable(options.run));
}

Json to_json(const Options& options, const formats::Imported& found) {
  const nn::ModelConfig& model = found.model;
  Json object = {{"run", options.run},
                 {"source", options.source},
                 {"format", found.format},
                 {"type", found.type},
                 {"parameters", found.parameters},
                 {"tokenizer", found.tokenizer},
                 {"chat_template", found.has_chat_template},
                 {"weights_hash", found.weights_hash},
                 {"model",
                  {{"family", train::family_name(model.family)},
                   {"layers", model.layers},
                   {"width", model.width},
                   {"heads", model.heads},
                   {"kv_heads", model.key_heads()},
                   {"head_dim", model.head_dim()},
                   {"inner_width", model.inner()},
                   {"context", model.context},
                   {"max_context", model.positions_limit()},
                   {"vocabulary", model.vocabulary},
                   {"tied_output", model.tied_output}}}};
  if (model.adapters.rank > 0) {
    object["base"] = options.base;
    object["adapters"] = adapters_json(model.adapters);
  }
  return object;
}

int run_import(const Options& options) {
  if (options.source.empty()) {
    throw Error("import: expected a Hugging Face folder, a GGUF file or a PEFT folder; run `quern import --help`");
  }
  if (options.run.empty()) throw Error("import: expected --run DIR, a new directory; run `quern import --help`");
  LongProgress progress([](uint64_t done, uint64_t total) {
    return fmt::format("importing: {} of {}", rounded_bytes(done), rounded_bytes(total));
  });
  formats::ImportOptions wanted{.context = {},
                                .progress = [&](uint64_t done, uint64_t total) { progress.show(done, total); }};
  if (options.context > 0) wanted.context = options.context;
  const formats::Imported found = options.base.empty()
                                      ? formats::import_model(options.source, options.run, wanted)
                                      : train::import_adapters(options.source, options.base, options.run, wanted, warn);
  progress.clear();
  for (const std::string& remark : found.remarks) warn(remark);
  if (options.json) {
    fmt::print("{}\n", json_text(to_json(options, found), 2));
  } else {
    print_text(options, found);
  }
  return 0;
}

}  // namespace

Command add_import(Parser root) {
  const auto options = std::make_shared<Options>();
  Parser command = root.add_command("import", "Make a run of a model from Hugging Face or llama.cpp");
  command.add_word("SOURCE", options->source, "A Hugging Face folder, a GGUF file, or with --base a PEFT folder");
  command.add_text("--base", options->base, "RUN", "The run of the model that SOURCE has adapters for");
  command.add_text("--run", options->run, "DIR", "Directory of the run, new or empty");
  command.add_number("--context", options->context, "N", "Length of sequences in training and evaluation",
                     {.min = 1, .max = nn::kMaxContext});
  command.add_flag("--json", options->json, "Print one JSON object");
  command.set_footer(kExamples);
  return {command, [options] { return run_import(*options); }};
}

}  // namespace quern::cli
