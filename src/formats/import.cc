#include "formats/import.h"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>

#include "checkpoint/folder.h"
#include "config/model_settings.h"
#include "config/run_folder.h"
#include "core/error.h"
#include "core/files.h"
#include "formats/hf_tokenizer.h"
#include "formats/import_parts.h"
#include "formats/model_source.h"
#include "formats/peft_import.h"

namespace quern::formats {
namespace {

namespace fs = std::filesystem;

ModelSource open_source(const fs::path& path) {
  std::error_code ignored;
  const fs::file_status status = fs::status(path, ignored);
  if (fs::is_directory(status) && is_peft_folder(path)) {
    throw Error(
        "[import] {}: expected a model, found the adapters of one; import the model first, then the adapters with "
        "--base RUN, its run",
        path.string());
  }
  if (fs::is_directory(status)) return open_hf_folder(path);
  if (fs::is_regular_file(status)) return open_gguf_model(path);
  throw Error("[import] {}: expected a Hugging Face folder or a GGUF file, found {}", path.string(),
              fs::exists(status) ? "something else" : "nothing of that name");
}

// Rates for fine-tuning: a hundredth of those for training from random weights, which would destroy what the model has
// learned. No steps: the run is complete; runs that start from it have the usual number.
train::RunConfig config_of(const ModelSource& source, uint64_t context) {
  train::RunConfig config;
  train::set_model(config, source.config.model, source.config.dropout);
  config.model.context = context;
  config.model.max_context = source.config.model.positions_limit();
  if (source.tokenizer != nullptr) {
    config.data.tokenizer = train::tokenizer_kind(source.tokenizer->name());
    config.data.vocabulary = std::max<uint64_t>(256, static_cast<uint64_t>(source.tokenizer->vocabulary_size()));
  }
  config.train.steps = 0;
  config.train.batch = 4;
  config.optimizer.rate = 5e-5;
  config.optimizer.min_rate = 5e-6;
  config.optimizer.warmup = 20;
  config.optimizer.weight_decay = 0.01;
  return config;
}

// Writes everything but config.toml, which makes the folder a run, and returns the weights' hash.
std::string write_run(const ModelSource& source, const train::RunConfig& config, const fs::path& folder,
                      const ImportOptions& options) {
  if (source.tokenizer != nullptr) write_file(folder / train::kTokenizerFile, source.tokenizer->to_json());
  for (const checkpoint::ExtraFile& file : source.files) write_file(folder / file.name, file.text);
  TensorEncoder encoder;
  const std::vector<checkpoint::TensorRef> refs = tensor_refs(source.tensors, encoder, options);
  const RunState state{.seed = config.train.seed};
  const fs::path path =
      checkpoint::save(folder / train::kCheckpointFolder, {refs, {}}, state, to_json(source.config),
                       hf_tokenizer_files(source.tokenizer.get(), source.config.model.positions_limit(), source.files));
  source.check_intact();
  return checkpoint::weights_hash(checkpoint::Checkpoint(path, checkpoint::Parts::kWeights).model());
}

}  // namespace

Imported import_model(const fs::path& from, const fs::path& run, const ImportOptions& options) {
  const fs::path folder = new_run_folder(run);
  const ModelSource source = open_source(from);
  train::RunConfig config = config_of(source, checked_context(options, source.config.model.positions_limit()));
  train::validate(config);
  create_folders(folder.parent_path());
  remove_leftovers_of(folder);
  AtomicDirectory directory(folder);
  config.init = {.from = fs::absolute(from).lexically_normal().string(), .weights_hash = {}};
  config.init.weights_hash = write_run(source, config, directory.temporary(), options);
  train::write_config(config, directory.temporary());
  new_run_folder(folder);  // someone may have put a file there meanwhile
  directory.commit(Existing::kKeep);
  Imported imported{.model = source.config.model,
                    .parameters = 0,
                    .format = source.format,
                    .type = source.type,
                    .tokenizer = tokenizer_text(source.tokenizer.get()),
                    .has_chat_template = has_chat_template(source.files),
                    .weights_hash = config.init.weights_hash,
                    .remarks = source.remarks};
  imported.model.context = config.model.context;
  for (const TensorSource& tensor : source.tensors) imported.parameters += tensor.size();
  return imported;
}

}  // namespace quern::formats
