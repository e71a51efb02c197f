// quern finetune: adapts a trained model to conversations.
#include <fmt/format.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "cli/chat_template_option.h"
#include "cli/commands.h"
#include "cli/config_options.h"
#include "cli/dashboard_option.h"
#include "cli/training.h"
#include "config/run_folder.h"
#include "core/error.h"
#include "core/temporary_folder.h"
#include "core/text.h"
#include "run/finetune_settings.h"
#include "run/run_lock.h"

namespace quern::cli {
namespace {

struct Options {
  ConfigOptions config;
  TrainingOptions training{.command = "finetune"};
  std::string base;
  std::string chat_template;
  bool full = false;
  bool dry_run = false;
  bool print_config = false;
};

constexpr SettingFlag kFlags[] = {
    {"--epochs", "data.epochs", "How often each conversation is used (default: 1)"},
    {"--rank", "lora.rank", "Rank of the adapters (default: 16)"},
    {"--alpha", "lora.alpha", "Scale of the adapters, which is alpha / rank (default: 32)"},
    {"--targets", "lora.targets", "Layers to adapt: all (default), or a list such as '[\"q_proj\", \"v_proj\"]'"},
    {"--rate", "optimizer.rate", "Learning rate (default: 2e-4, with --full 2e-5)"},
    {"--steps", "train.steps", "Number of weight updates, instead of --epochs"},
    {"--batch", "train.batch", "Sequences per update (default: 4)"},
    {"--accumulation", "train.accumulation", ""},
    {"--context", "model.context", "Tokens per sequence (default: 512); longer conversations are cut"},
    {"--seed", "train.seed", ""},
    {"--precision", "train.precision", "Storage format of matrices and activations: fp32, bf16 or fp16"},
    {"--recompute", "train.recompute",
     "Activations to recompute in backward: auto, none, every-layer, sqrt or interval=K; does not affect the result"},
    {"--memory", "train.memory", "Memory limit of the run, such as 512M or 2G; does not affect the result"},
    {"--threads", "train.threads", "Worker threads, 1 to 64 (default: all cores); does not affect the result"},
};

constexpr const char* kExamples = R"(Examples:
  quern finetune --base SmolLM2-135M-Instruct chats.jsonl --run runs/tuned    a Hugging Face folder
  quern finetune --base smollm2.gguf chats.jsonl --run runs/tuned             a GGUF file
  quern finetune --base runs/book chats.jsonl --run runs/tuned --chat-template chatml
  quern finetune --base runs/smol chats/ --run runs/tuned --epochs 3          train.jsonl and valid.jsonl in a folder
  quern finetune --base runs/smol chats.jsonl --dry-run                       what would happen
  quern finetune --base runs/smol chats.jsonl --run runs/full --full          train all weights
  quern finetune --run runs/tuned --resume                                    resume after an interruption
  quern data show chats.jsonl --base runs/smol                                what of a conversation is trained

Then:
  quern chat --run runs/tuned
  quern export --run runs/tuned --to peft adapter                             for Hugging Face PEFT
  quern export --run runs/tuned --merge --to gguf tuned.gguf                  the whole model, for llama.cpp

DATA are JSON Lines: {"messages": [{"role": "user", "content": "..."}, {"role": "assistant", "content": "..."}]},
{"prompt": "...", "completion": "..."} or {"text": "..."}. Of messages, exactly what the assistant says is trained: its
content and the token that ends its turn, for every turn without "train": false. Short conversations share a sequence
without seeing each other. The last tenth of the conversations is held out, unless the folder has a valid.jsonl.

By default a low-rank adapter (LoRA) is trained for every linear layer, and the model itself stays as it is; checkpoints
have the adapters alone, and can be opened by PEFT. A base that is not a run is imported first, into DIR-base.
--print-config explains every setting. Ctrl-C saves and stops; the resumed run is bit-identical to an uninterrupted
one, for any number of threads.)";

void say(const std::string& text) { fmt::print("{}\n", printable(text)); }

// Reports an import, if one is needed.
train::RunConfig new_settings(const Options& options, const std::string& import_to,
                              const std::function<void(const std::string&)>& report) {
  if (options.base.empty()) {
    throw Error(
        "finetune: expected --base MODEL, a run, a Hugging Face folder or a GGUF file; run `quern finetune --help`");
  }
  if (options.config.data.empty()) {
    throw Error("finetune: expected DATA, JSON Lines with conversations; run `quern finetune --help`");
  }
  const std::filesystem::path base = train::base_run(options.base, import_to, report);
  train::RunConfig defaults = train::finetune_config(base, options.full);
  defaults.data.paths = options.config.data;
  defaults.data.chat_template = options.chat_template;
  train::RunConfig config = config_of(options.config, defaults);
  train::check_full(config, options.full);
  train::choose_length(config);
  return config;
}

// What a base that is not a run is imported into.
std::string import_folder(const Options& options) { return options.training.run + "-base"; }

// Ranks would import at the same time.
void check_import(const Options& options, const dist::Communicator* ranks) {
  if (ranks == nullptr || ranks->size() == 1 || !train::needs_import(options.base, import_folder(options))) return;
  throw Error("finetune: --base: expected a run for several ranks, found {}; import it first: quern import {} --run {}",
              in_quotes(options.base), options.base, import_folder(options));
}

train::RunConfig settings(const Options& options, const dist::Communicator* ranks, bool& imported) {
  if (options.training.run.empty()) {
    throw Error("finetune: expected --run DIR, the directory for the result; run `quern finetune --help`");
  }
  if (!options.training.resume) {
    check_import(options, ranks);
    return new_settings(options, import_folder(options), [&](const std::string& text) {
      imported = true;
      say(text);
    });
  }
  if (!options.base.empty() || !options.chat_template.empty() || options.full) {
    throw Error("--resume continues a run with its own model; omit --base, --chat-template and --full");
  }
  train::RunConfig config = config_to_resume(options.config, options.training.run);
  train::choose_length(config);
  return config;
}

// Whether this command or another process has a run there, or is about to.
bool is_in_use(const std::filesystem::path& run) {
  std::error_code ignored;
  return std::filesystem::exists(run / train::kConfigFile, ignored) ||
         std::filesystem::exists(run / train::kLockFile, ignored);
}

// A command that fails, or is stopped, before there is a run leaves no import behind either; that of another process is
// not its own.
int train_adapters(const Options& options) {
  bool imported = false;
  const auto remove_import = [&] {
    std::error_code ignored;
    if (imported && !is_in_use(options.training.run)) std::filesystem::remove_all(import_folder(options), ignored);
  };
  try {
    const int code = run_training(options.training,
                                  [&](const dist::Communicator* ranks) { return settings(options, ranks, imported); });
    remove_import();
    return code;
  } catch (const Error&) {
    remove_import();
    throw;
  }
}

int run_finetune(const Options& options) {
  if (!options.dry_run && !options.print_config) return train_adapters(options);
  const TemporaryFolder imported;
  const train::RunConfig config = new_settings(options, (imported.path() / "base").string(), say);
  if (!options.print_config) return show_training(config);
  fmt::print("{}", train::to_toml(config));
  return 0;
}

}  // namespace

Command add_finetune(Parser root) {
  const auto options = std::make_shared<Options>();
  Parser command = root.add_command("finetune", "Adapt a trained model to conversations (LoRA, or all weights)");
  command.add_words("DATA", options->config.data, "JSON Lines with conversations, or a folder with train.jsonl");
  command.add_text("--base", options->base, "MODEL", "A run, RUN@best, a Hugging Face folder or a GGUF file");
  command.add_text("--run", options->training.run, "DIR", "Directory of the run");
  command.add_flag("--resume", options->training.resume, "Resume the run in --run");
  command.add_flag("--full", options->full, "Train all weights instead of adapters");
  add_chat_template(command, options->chat_template);
  add_setting_flags(command, options->config, kFlags);
  command.add_flag("--dry-run", options->dry_run, "Show what would happen, and write nothing");
  command.add_flag("--print-config", options->print_config, "Print every setting with its meaning, and exit");
  add_dashboard_flag(command, options->training.dashboard);
  command.add_flag("--profile", options->training.profile, "Print a profile of the workers' time at the end");
  command.set_footer(kExamples);
  return {command, [options] { return run_finetune(*options); }};
}

}  // namespace quern::cli
