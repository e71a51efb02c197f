#include "evaluate/import_adapters.h"

#include <algorithm>
#include <vector>

#include "config/run_folder.h"
#include "core/files.h"
#include "evaluate/base_model.h"
#include "formats/hf_config.h"
#include "formats/hf_tokenizer.h"
#include "formats/import_parts.h"
#include "formats/merge.h"
#include "formats/model_files.h"
#include "formats/peft.h"
#include "formats/peft_import.h"

namespace quern::train {
namespace {

namespace fs = std::filesystem;
using checkpoint::ExtraFile;

// The model without what the run `base` trained, or did not train.
nn::ModelConfig plain_model(const SavedModel& base) {
  nn::ModelConfig model = formats::without_adapters(base.model);
  model.frozen.clear();
  return model;
}

// Model and tokenizer of the base. Rates for fine-tuning adapters: ten times those for all weights. No steps: the run
// is complete; runs that start from it have the usual number.
RunConfig config_of(const SavedModel& base, const nn::AdapterConfig& adapters, const formats::ImportOptions& options) {
  RunConfig config;
  config.model = base.config.model;
  if (options.context) {
    config.model.max_context = base.model.positions_limit();
    config.model.context = formats::checked_context(options, config.model.max_context);
  }
  config.data.tokenizer = base.config.data.tokenizer;
  config.data.tokenizer_file = base.config.data.tokenizer_file;
  config.data.vocabulary = base.config.data.vocabulary;
  config.train.steps = 0;
  config.train.batch = 4;
  config.train.precision = base.config.train.precision;
  config.optimizer.rate = 2e-4;
  config.optimizer.min_rate = 2e-5;
  config.optimizer.warmup = 20;
  config.optimizer.weight_decay = 0.0;
  config.lora = {.rank = adapters.rank,
                 .alpha = adapters.alpha,
                 .dropout = adapters.dropout,
                 .rslora = adapters.rank_stabilized,
                 .targets = adapters.targets};
  config.init = {.from = fs::absolute(base.checkpoint.path()).lexically_normal().string(),
                 .weights_hash = checkpoint::weights_hash(base.checkpoint.model())};
  return config;
}

// The files of the base, with those of the adapters in their place.
std::vector<ExtraFile> model_files(const SavedModel& base, const std::vector<ExtraFile>& own) {
  std::vector<ExtraFile> files = formats::read_model_files(base.folder);
  std::erase_if(files, [&](const ExtraFile& file) { return formats::find_file(own, file.name) != nullptr; });
  files.insert(files.end(), own.begin(), own.end());
  return files;
}

// What is in the checkpoints of the new run, of the base or of the adapters, besides the weights.
struct Description {
  std::string config;
  std::vector<ExtraFile> extras;
};
Description describe(const SavedModel& base, const nn::ModelConfig& model, const std::vector<ExtraFile>& files) {
  const data::Tokenizer* tokenizer = base.tokenizer.get();
  const formats::HfConfig config{.model = model,
                                 .dropout = base.config.model.dropout,
                                 .tokens = formats::special_tokens(files, tokenizer, model.vocabulary)};
  return {formats::to_json(config), formats::hf_tokenizer_files(tokenizer, model.positions_limit(), files)};
}

void write_base(const SavedModel& base, const std::vector<ExtraFile>& files, const fs::path& folder) {
  if (!base.base) return link_base(base.checkpoint.path(), folder);
  const std::vector<formats::TensorSource> weights = base.weights();
  const formats::ImportOptions quiet;
  formats::TensorEncoder encoder;
  const auto refs = formats::tensor_refs(weights, encoder, quiet);
  const Description description = describe(base, plain_model(base), files);
  checkpoint::save(folder / kBaseFolder, {refs, {}}, base.checkpoint.state(), description.config, description.extras);
  base.checkpoint.model().check_intact();
  base.base->model().check_intact();
}

// Returns the hash of the adapters.
std::string write_adapters(const SavedModel& base, const formats::AdapterSource& source, const RunConfig& config,
                           const std::vector<ExtraFile>& files, const fs::path& folder,
                           const formats::ImportOptions& options) {
  Description description = describe(base, source.model, files);
  description.extras.push_back(formats::peft_config_file(source.model, config.init.from));
  formats::TensorEncoder encoder;
  const auto refs = formats::tensor_refs(source.tensors, encoder, options);
  const fs::path path =
      checkpoint::save(folder / kCheckpointFolder, {.weights = refs, .optimizer = {}, .adapters = true},
                       RunState{.seed = config.train.seed}, description.config, description.extras);
  source.check_intact();
  return checkpoint::weights_hash(checkpoint::Checkpoint(path, checkpoint::Parts::kWeights).model());
}

}  // namespace

formats::Imported import_adapters(const fs::path& from, const fs::path& base_run, const fs::path& run,
                                  const formats::ImportOptions& options, const Warn& warn) {
  const fs::path folder = formats::new_run_folder(run);
  const SavedModel base = open_model(base_run, warn);
  const formats::AdapterSource source = formats::open_peft_folder(from, plain_model(base));
  const RunConfig config = config_of(base, source.model.adapters, options);
  validate(config);
  const std::vector<ExtraFile> files = model_files(base, source.files);
  create_folders(folder.parent_path());
  remove_leftovers_of(folder);
  AtomicDirectory directory(folder);
  const fs::path& there = directory.temporary();
  if (base.tokenizer != nullptr) write_file(there / kTokenizerFile, base.tokenizer->to_json());
  for (const ExtraFile& file : files) write_file(there / file.name, file.text);
  formats::Imported imported{.model = source.model,
                             .parameters = 0,
                             .format = "PEFT adapters",
                             .type = source.type,
                             .tokenizer = formats::tokenizer_text(base.tokenizer.get()),
                             .has_chat_template = formats::has_chat_template(files),
                             .weights_hash = write_adapters(base, source, config, files, there, options),
                             .remarks = {}};
  write_base(base, files, there);
  write_config(config, there);
  formats::new_run_folder(folder);  // someone may have put a file there meanwhile
  directory.commit(Existing::kKeep);
  imported.model.context = config.model.context;
  for (const formats::TensorSource& tensor : source.tensors) imported.parameters += tensor.size();
  return imported;
}

}  // namespace quern::train
