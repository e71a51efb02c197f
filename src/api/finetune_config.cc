#include "api/finetune_config.h"

#include "api/run_training.h"
#include "config/run_folder.h"
#include "core/error.h"
#include "run/finetune_settings.h"

namespace quern::api {
namespace {

using train::RunConfig;

void check(const FinetuneOptions& options) {
  if (options.out.empty()) throw Error("[finetune] out: expected a folder for the run, found none");
  if (options.resume) {
    if (options.base.empty() && options.chat_template.empty() && !options.full) return;
    throw Error("[finetune] resume continues a run with its own model; omit base, chat_template and full");
  }
  if (options.base.empty()) {
    throw Error("[finetune] base: expected a run, a Hugging Face folder or a GGUF file, found none");
  }
  if (options.data.empty()) throw Error("[finetune] data: expected JSON Lines with conversations, found none");
}

RunConfig new_config(const FinetuneOptions& options) {
  const std::filesystem::path import_to = (options.out.parent_path() / options.out.filename()).string() + "-base";
  const std::filesystem::path base = train::base_run(options.base, import_to, [](const std::string&) {});
  RunConfig config = train::finetune_config(base, options.full);
  config.data.paths.assign(options.data.begin(), options.data.end());
  config.data.chat_template = options.chat_template;
  return config;
}

}  // namespace

RunConfig finetune_config(const FinetuneOptions& options, const std::function<void(RunConfig&)>& apply) {
  check(options);
  const RunConfig start = options.resume ? train::read_config(options.out) : new_config(options);
  RunConfig config = completed(start, [&](RunConfig& found) {
    apply(found);
    if (!options.data.empty()) found.data.paths.assign(options.data.begin(), options.data.end());
  });
  config.init = start.init;
  train::check_full(config, options.full);
  train::choose_length(config);
  return config;
}

TrainOptions training_of(const FinetuneOptions& options) {
  return {.out = options.out,
          .resume = options.resume,
          .on_step = options.on_step,
          .on_warning = options.on_warning,
          .on_preparing = options.on_preparing};
}

}  // namespace quern::api
