// quern export: writes a trained model for Hugging Face transformers.
#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/machine_json.h"
#include "cli/warnings.h"
#include "core/error.h"
#include "core/json.h"
#include "core/text.h"
#include "evaluate/load.h"

namespace quern::cli {
namespace {

struct Options {
  std::string word;  // RUN
  std::string run;   // --run
  std::string checkpoint;
  std::string out;
  bool json = false;
};

constexpr const char* kExamples = R"(Examples:
  quern export runs/first --out exported              the newest checkpoint
  quern export runs/first --checkpoint best --out exported
  quern export runs/first --checkpoint 500 --out exported

Then, in Python: AutoModelForCausalLM.from_pretrained("exported") gives the logits of Quern, and
AutoTokenizer.from_pretrained("exported") its token ids. The directory must be new or empty.)";

std::string run_of(const Options& options) {
  if (!options.word.empty() && !options.run.empty()) throw Error("export: expected RUN or --run DIR, found both");
  if (!options.word.empty()) return options.word;
  if (!options.run.empty()) return options.run;
  throw Error("export: expected RUN, a trained run; run `quern export --help`");
}

int run_export(const Options& options) {
  const std::string run = run_of(options);
  if (options.out.empty()) throw Error("export: expected --out DIR, a new directory; run `quern export --help`");
  const train::TrainedModel trained = train::load_model(run, warn, options.checkpoint);
  const std::vector<std::string> files = trained.export_to(options.out);
  if (options.json) {
    const Json object = {
        {"run", trained.folder.string()}, {"step", trained.state.step}, {"out", options.out}, {"files", files}};
    fmt::print("{}\n", json_text(object, 2));
  } else {
    fmt::print("step {} of {}, in {}: {}\n", trained.state.step, printable(trained.folder.string()),
               printable(options.out), fmt::join(files, ", "));
  }
  if (trained.tokenizer == nullptr) warn("the run has no tokenizer.json, so the directory has no tokenizer");
  return 0;
}

}  // namespace

Command add_export(Parser root) {
  const auto options = std::make_shared<Options>();
  Parser command = root.add_command("export", "Write a model for Hugging Face transformers");
  command.add_word("RUN", options->word, "Directory of the run, or of one of its checkpoints");
  command.add_text("--run", options->run, "DIR", "The same as RUN");
  command.add_text("--out", options->out, "DIR", "Directory to write, new or empty");
  command.add_text("--checkpoint", options->checkpoint, "WHICH",
                   "newest (the default), best, the number of a step, or the directory of a checkpoint");
  command.add_flag("--json", options->json, "Print one JSON object");
  command.set_footer(kExamples);
  return {command, [options] { return run_export(*options); }};
}

}  // namespace quern::cli
