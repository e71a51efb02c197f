#include "run/finetune_settings.h"

#include <fmt/format.h>

#include <algorithm>

#include "config/run_folder.h"
#include "core/error.h"
#include "formats/import.h"
#include "run/source_run.h"

namespace quern::train {
namespace {

namespace fs = std::filesystem;

// Long enough for most conversations; longer ones are cut, which is said.
constexpr uint64_t kContext = 512;

bool is_model_of_others(const fs::path& base) {
  std::error_code ignored;
  if (fs::is_regular_file(base, ignored)) return true;
  return fs::is_regular_file(base / "config.json", ignored) && !fs::exists(base / "state.json", ignored) &&
         !fs::exists(base / kConfigFile, ignored);
}

bool is_import_of(const fs::path& run, const fs::path& source) {
  std::error_code ignored;
  if (!fs::exists(run / kConfigFile, ignored)) return false;
  return read_config(run).init.from == fs::absolute(source).lexically_normal().string();
}

bool is_newer(const fs::path& file, const fs::path& than) {
  std::error_code error, other_error;
  const auto time = fs::last_write_time(file, error), other_time = fs::last_write_time(than, other_error);
  return !error && !other_error && time > other_time;
}

// Of a model, leaving out files that others add to its folder, such as a README.
bool has_changed_since(const fs::path& source, const fs::path& imported) {
  std::error_code error;
  if (!fs::is_directory(source, error)) return is_newer(source, imported / kConfigFile);
  for (fs::directory_iterator it(source, error), end; !error && it != end; it.increment(error)) {
    const fs::path ending = it->path().extension();
    const bool is_read = ending == ".safetensors" || ending == ".json" || ending == ".jinja";
    if (is_read && is_newer(it->path(), imported / kConfigFile)) return true;
  }
  return false;
}

}  // namespace

RunConfig finetune_config(const fs::path& base, bool full) {
  RunConfig config = config_from(base);
  const uint64_t limit = config.model.max_context == 0 ? config.model.context : config.model.max_context;
  if (config.model.max_context == 0) config.model.max_context = limit;
  config.model.context = std::min(limit, kContext);
  config.model.dropout = 0;
  config.lora = {.rank = full ? uint64_t{0} : uint64_t{16}};
  config.train.steps = 0;
  config.train.batch = 4;
  config.train.accumulation = 1;
  config.train.freeze.clear();
  config.train.validation_interval = 20;
  config.train.validation_batches = 0;
  config.optimizer = {.rate = full ? 2e-5 : 2e-4, .min_rate = 0, .beta2 = 0.999, .weight_decay = 0};
  config.data.paths.clear();
  config.data.sources.clear();
  config.data.format = DataFormat::kChat;
  config.data.encoding = TextEncoding::kUtf8;
  config.data.sampling = Sampling::kRandom;
  config.data.shuffle = 0;
  config.data.broadcast = false;
  config.data.packing = true;
  config.data.epochs = 1;
  config.data.chat_template.clear();
  config.data.validation_fraction = 0.1;
  config.checkpoint = {.interval = 50};
  config.log.interval = 1;
  return config;
}

void check_full(const RunConfig& config, bool full) {
  if (!full || config.lora.rank == 0) return;
  throw Error("[config] lora.rank: expected 0 with full, which trains all weights, found {}; omit one of them",
              config.lora.rank);
}

void choose_length(RunConfig& config) {
  const RunConfig::Given& given = config.given;
  if (given.steps && !given.epochs) config.data.epochs = 0;
  if (given.epochs && !given.steps) config.train.steps = 0;
}

bool needs_import(const fs::path& base, const fs::path& import_to) {
  return is_model_of_others(base) && !is_import_of(import_to, base);
}

fs::path base_run(const fs::path& base, const fs::path& import_to,
                  const std::function<void(const std::string&)>& report) {
  if (!is_model_of_others(base)) return base;
  if (!needs_import(base, import_to)) {
    if (!has_changed_since(base, import_to)) return import_to;
    throw Error("[import] {}: was imported from {}, which has changed since; remove it, or choose another run",
                import_to.string(), base.string());
  }
  const formats::Imported found = formats::import_model(base, import_to);
  report(fmt::format("imported {} ({}, {}) into {}", base.string(), found.format, found.type, import_to.string()));
  return import_to;
}

}  // namespace quern::train
