#include "run/source_run.h"

#include <cassert>
#include <string>
#include <utility>
#include <vector>

#include "checkpoint/tensor_refs.h"
#include "config/config_fields.h"
#include "config/data_sources.h"
#include "config/run_folder.h"
#include "core/error.h"
#include "core/files.h"
#include "core/text.h"
#include "dataset/data_kind.h"
#include "evaluate/base_model.h"
#include "evaluate/find_checkpoint.h"
#include "formats/hf_config.h"
#include "formats/merge.h"
#include "formats/model_files.h"

namespace quern::train {
namespace {

namespace fs = std::filesystem;

// Absolute and without a slash at the end.
fs::path resolved(const fs::path& from) {
  const fs::path path = fs::absolute(from).lexically_normal();
  return path.has_filename() ? path : path.parent_path();
}

CheckpointPath source_of(const fs::path& from) {
  const fs::path path = resolved(from);
  CheckpointPath found = find_checkpoint(path, {});
  if (fs::is_regular_file(found.run / kConfigFile)) return found;
  throw Error("[run] {}: expected a run to start from, RUN@best, RUN@STEP or RUN/checkpoints/step-NNNNNNNN, found {}",
              in_quotes(from.string()), fs::exists(path) ? "something else" : "nothing of that name");
}

checkpoint::Checkpoint open_source(const CheckpointPath& source, const Warn& warn) {
  if (source.checkpoint) return checkpoint::Checkpoint(*source.checkpoint, checkpoint::Parts::kWeights);
  if (auto newest = newest_checkpoint(source.run, warn, checkpoint::Parts::kWeights)) return std::move(*newest);
  throw Error("[run] {}: expected a checkpoint, found none; train it first", source.run.string());
}

// Rows of the table of positions; 0 without one.
uint64_t position_rows(const RunConfig::Model& model) {
  if (model.family != nn::Family::kGpt2 || model.positions != nn::Positions::kLearned) return 0;
  return model.max_context == 0 ? model.context : model.max_context;
}

// Error if settings that the weights depend on differ. They depend on the context only through a table of positions,
// which may be longer than the sequences of the new run.
void check_same_model(const RunConfig& source, const RunConfig& config, const fs::path& run) {
  const bool same_rows = position_rows(source.model) == position_rows(config.model);
  for (const Field& field : fields()) {
    const std::string path = field.path();
    const bool positions = field.name == "context" || field.name == "max_context";
    const bool shape = field.table == "model" && field.name != "dropout" && !(positions && same_rows);
    if (!shape && path != "data.tokenizer" && path != "data.vocabulary") continue;
    const std::string expected = value_text(field, source), found = value_text(field, config);
    if (expected == found) continue;
    throw Error(
        "[config] {}: expected {}, as in {}, whose weights the run starts from, found {}; omit it, or train a "
        "new model",
        path, expected, run.string(), found);
  }
}

void check_weights(const fs::path& path, const std::string& expected, const std::string& found) {
  if (expected.empty() || expected == found) return;
  throw Error("[run] {}: expected the weights {} (init.weights_hash), found {}", path.string(), expected, found);
}

}  // namespace

RunConfig config_from(const fs::path& from) {
  const fs::path run = source_of(from).run;
  RunConfig config = read_config(run);
  expect_language_model(config, run);
  config.history.clear();
  config.given = {};
  if (config.train.steps == 0) config.train.steps = RunConfig::Train().steps;
  if (config.train.lanes == 1) config.train.lanes = 0;  // one process then, perhaps several ranks now
  config.init = {.from = resolved(from).string(), .weights_hash = {}};
  config.lora = {};  // its adapters are merged
  config.data.format = DataFormat::kText;
  config.data.epochs = 0;
  config.data.chat_template.clear();
  return config;
}

fs::path resolve_source(RunConfig& config, const Warn& warn) {
  const CheckpointPath source = source_of(config.init.from);
  check_same_model(read_config(source.run), config, source.run);
  fs::path tokenizer = source.run / kTokenizerFile;
  std::vector<fs::path> paths;
  for (const WeightedSource& data : weighted_sources(config)) {
    paths.insert(paths.end(), data.paths.begin(), data.paths.end());
  }
  if (!fs::exists(tokenizer) && (paths.empty() || !are_shards(paths))) {
    throw Error(
        "[run] {}: has no {}, because it was trained on token shards, or imported without one; give token shards as "
        "DATA",
        source.run.string(), kTokenizerFile);
  }
  const checkpoint::Checkpoint found = open_source(source, warn);
  const std::string hash = checkpoint::weights_hash(found.model());
  check_weights(found.path(), config.init.weights_hash, hash);
  config.init = {.from = found.path().string(), .weights_hash = hash};
  return tokenizer;
}

void copy_model_files(const RunConfig::Init& init, const fs::path& folder) {
  const fs::path run = source_of(init.from).run;
  for (const checkpoint::ExtraFile& file : formats::read_model_files(run)) write_file(folder / file.name, file.text);
}

void load_source(const RunConfig::Init& init, nn::LanguageModel& model) {
  const SavedModel source = open_model(init.from, {});
  check_weights(source.checkpoint.path(), init.weights_hash, checkpoint::weights_hash(source.checkpoint.model()));
  const std::vector<formats::TensorSource> weights = source.weights();
  const std::vector<checkpoint::TensorRef> refs = checkpoint::base_refs(model);
  assert(refs.size() == weights.size());  // resolve_source() has compared the models
  for (size_t i = 0; i < refs.size(); ++i) weights[i].read(0, refs[i].values);
  source.checkpoint.model().check_intact();
  if (source.base) source.base->model().check_intact();
}

void write_base(const RunConfig::Init& init, const RunState& state, const fs::path& folder) {
  fs::remove_all(folder / kBaseFolder);
  const SavedModel source = open_model(init.from, {});
  if (!source.base) return link_base(source.checkpoint.path(), folder);
  formats::TensorEncoder encoder;
  std::vector<checkpoint::TensorRef> refs;
  for (const formats::TensorSource& tensor : source.weights()) {  // only the size of the values is used
    refs.push_back({tensor.name,
                    tensor.shape,
                    {static_cast<float*>(nullptr), tensor.size()},
                    encoder.reader(tensor, formats::GgmlType::kF32)});
  }
  const formats::HfConfig config{.model = formats::without_adapters(source.model)};
  checkpoint::save(folder / kBaseFolder, {refs, {}}, state, formats::to_json(config));
  source.checkpoint.model().check_intact();
  source.base->model().check_intact();
}

}  // namespace quern::train
