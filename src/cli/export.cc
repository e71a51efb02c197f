// quern export: writes a model for other programs.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/machine_json.h"
#include "cli/progress.h"
#include "cli/warnings.h"
#include "core/error.h"
#include "core/json.h"
#include "core/text.h"
#include "evaluate/load.h"

namespace quern::cli {
namespace {

struct Options {
  std::vector<std::string> words;  // RUN and OUT
  std::string run;                 // --run
  std::string checkpoint;
  std::string to = "hf";
  std::string dtype = "f32";
  std::string out;  // --out
  bool merge = false;
  bool force = false;
  bool json = false;
};

constexpr const char* kExamples = R"(Examples:
  quern export --run runs/first --to hf exported          a folder for Hugging Face transformers
  quern export --run runs/first --to gguf first.gguf      a file for llama.cpp and programs that use it
  quern export --run runs/first --to gguf --dtype q8_0 first.gguf
  quern export --run runs/first --to hf --dtype bf16 exported
  quern export runs/first --checkpoint best --out exported
  quern export runs/first --checkpoint 500 --out exported

A run with adapters (lora.rank above 0):
  quern export --run runs/pirate --to peft pirate         the adapters alone, for Hugging Face PEFT
  quern export --run runs/pirate --to gguf-lora pirate.gguf   the adapters alone, for llama.cpp's --lora
  quern export --run runs/pirate --merge --to hf exported     the whole model, adapters merged into its weights
  quern export --run runs/pirate --merge --to gguf --dtype q8_0 pirate-model.gguf

Then, in Python: AutoModelForCausalLM.from_pretrained("exported") gives the logits of Quern, and
AutoTokenizer.from_pretrained("exported") its token ids. With llama.cpp: llama-completion -m first.gguf -p "Once".
Adapters: PeftModel.from_pretrained(model, "pirate"), where model is the one that the run was started from, and
llama-completion -m base.gguf --lora pirate.gguf, where base.gguf is an export of that model.

f32 and, for a model that was imported in BF16 or F16, bf16 and f16 keep every value; f16 and bf16 round to nearest
even. q8_0 is for --to gguf only: matrices become blocks of 32 values with a common scale, with the bits of llama-quantize;
vectors stay F32, and matrices whose rows are no multiple of 32 become F16.

The output must be new, or an empty directory. --force replaces an earlier export, and nothing else. The result is
complete or absent.)";

struct Places {
  std::string run, out;
};

// RUN OUT, --run DIR OUT, RUN --out OUT or --run DIR --out OUT.
Places places_of(const Options& options) {
  std::vector<std::string> words = options.words;
  Places places{options.run, options.out};
  if (!places.out.empty() && words.size() > (places.run.empty() ? 1u : 0u)) {
    throw Error("export: expected {}, found both", places.run.empty() ? "OUT or --out DIR" : "RUN or --run DIR");
  }
  if (places.run.empty() && !words.empty()) {
    places.run = words.front();
    words.erase(words.begin());
  }
  if (places.out.empty() && !words.empty()) {
    places.out = words.front();
    words.erase(words.begin());
  }
  if (places.run.empty()) throw Error("export: expected RUN, a trained run; run `quern export --help`");
  if (places.out.empty()) throw Error("export: expected OUT, a new directory or file; run `quern export --help`");
  if (!words.empty()) throw Error("export: expected RUN and OUT, found also {}", in_quotes(words.front()));
  return places;
}

int run_export(const Options& options) {
  const auto [run, out] = places_of(options);
  LongProgress progress([](uint64_t done, uint64_t total) {
    return fmt::format("exporting: {} % of {} parameters", 100 * done / std::max<uint64_t>(1, total), total);
  });
  const formats::ExportOptions wanted{.to = formats::export_format(options.to),
                                      .type = formats::export_type(options.dtype),
                                      .merge = options.merge,
                                      .force = options.force,
                                      .progress = [&](uint64_t done, uint64_t total) { progress.show(done, total); }};
  const train::SavedModel saved = train::open_model(run, warn, options.checkpoint);
  const formats::ExportResult result = saved.export_to(out, wanted);
  progress.clear();
  const uint64_t step = saved.checkpoint.state().step;
  if (options.json) {
    const Json object = {
        {"run", saved.folder.string()}, {"step", step}, {"to", options.to},      {"dtype", options.dtype},
        {"merge", options.merge},       {"out", out},   {"files", result.files}, {"remarks", result.remarks}};
    fmt::print("{}\n", json_text(object, 2));
  } else if (!formats::writes_folder(wanted.to)) {
    fmt::print("step {} of {}, in {}\n", step, printable(saved.folder.string()), printable(out));
  } else {
    fmt::print("step {} of {}, in {}: {}\n", step, printable(saved.folder.string()), printable(out),
               fmt::join(result.files, ", "));
  }
  for (const std::string& remark : result.remarks) warn(remark);
  return 0;
}

}  // namespace

Command add_export(Parser root) {
  const auto options = std::make_shared<Options>();
  Parser command = root.add_command("export", "Write a model for Hugging Face transformers or llama.cpp");
  command.add_words("RUN OUT", options->words, "Directory of the run, or of one of its checkpoints; what to write");
  command.add_text("--run", options->run, "DIR", "The same as RUN");
  command.add_text("--out", options->out, "OUT", "The same as OUT");
  command.add_choice("--to", options->to, {"hf", "gguf", "peft", "gguf-lora"}, "FORMAT",
                     "hf: a directory for transformers; gguf: a file for llama.cpp; peft, gguf-lora: adapters alone");
  command.add_flag("--merge", options->merge, "Write a run with adapters as a whole model, for hf and gguf");
  command.add_choice("--dtype", options->dtype, {"f32", "f16", "bf16", "q8_0"}, "TYPE",
                     "Format of the weights; q8_0 only for gguf");
  command.add_flag("--force", options->force, "Replace an earlier export");
  command.add_text("--checkpoint", options->checkpoint, "WHICH",
                   "newest (the default), best, the number of a step, or the directory of a checkpoint");
  command.add_flag("--json", options->json, "Print one JSON object");
  command.set_footer(kExamples);
  return {command, [options] { return run_export(*options); }};
}

}  // namespace quern::cli
