#include "learn/checkpoints.h"

#include <fmt/format.h>

#include <charconv>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "checkpoint/folder.h"
#include "config/run_folder.h"
#include "core/error.h"
#include "core/json.h"
#include "core/json_fields.h"
#include "replay/snapshot.h"

namespace quern::learn {
namespace {

namespace fs = std::filesystem;

constexpr const char* kRowsFile = "rows.replay";
constexpr const char* kRatedFile = "rated.safetensors";
constexpr const char* kProgressFile = "selfplay.json";
constexpr std::string_view kVersionPrefix = "version-", kVersionSuffix = ".safetensors";

std::string version_file(uint64_t version) { return fmt::format("{}{:08}{}", kVersionPrefix, version, kVersionSuffix); }

// The number in the name of such a file.
std::optional<uint64_t> version_of(std::string_view name) {
  if (!name.starts_with(kVersionPrefix) || !name.ends_with(kVersionSuffix)) return std::nullopt;
  name.remove_prefix(kVersionPrefix.size());
  name.remove_suffix(kVersionSuffix.size());
  uint64_t version = 0;
  const auto [end, code] = std::from_chars(name.data(), name.data() + name.size(), version);
  if (code != std::errc() || end != name.data() + name.size()) return std::nullopt;
  return version;
}

std::string to_json(const Progress& progress) {
  const Totals& totals = progress.totals;
  return json_text(nlohmann::ordered_json{{"games", totals.games},
                                          {"moves", totals.moves},
                                          {"rows", totals.rows},
                                          {"evaluations", totals.evaluations},
                                          {"first_wins", totals.first_wins},
                                          {"draws", totals.draws},
                                          {"seconds", totals.seconds},
                                          {"launches", progress.launches},
                                          {"elo", progress.rated.elo}},
                   2) +
         "\n";
}

void read_json(std::string_view text, const fs::path& path, Progress& progress) {
  constexpr uint64_t kMost = uint64_t{1} << 62;
  constexpr double kLargest = 1e15;
  const nlohmann::json json = parse_json(text);
  if (!json.is_object()) throw Error("[selfplay] {}: expected a JSON object, found something else", path.string());
  const JsonFields fields(json, "[selfplay] " + path.string());
  progress.totals = {fields.whole("games", kMost),       fields.whole("moves", kMost),
                     fields.whole("rows", kMost),        fields.whole("evaluations", kMost),
                     fields.whole("first_wins", kMost),  fields.whole("draws", kMost),
                     fields.real("seconds", 0, kLargest)};
  progress.launches = fields.whole("launches", kMost);
  progress.rated.elo = fields.real("elo", -kLargest, kLargest);
}

}  // namespace

std::string network_json(const std::string& game, const nn::BoardConfig& config) {
  return json_text(
             nlohmann::ordered_json{{"model_type", "quern-board"},
                                    {"game", game},
                                    {"squares", config.squares},
                                    {"planes", config.planes},
                                    {"actions", config.actions},
                                    {"width", config.width},
                                    {"layers", config.layers},
                                    {"heads", config.heads},
                                    {"inner_width", config.inner()},
                                    {"norm", config.norm == nn::NormKind::kRmsnorm ? "rmsnorm" : "layernorm"},
                                    {"activation", config.activation == nn::Activation::kRelu2 ? "relu2" : "gelu"},
                                    {"norm_epsilon", config.norm_epsilon}},
             2) +
         "\n";
}

fs::path save_checkpoint(const fs::path& run, const train::RunConfig& config, const RunState& state,
                         const Learner& learner, const replay::ReplayBuffer* buffer, const Progress& progress) {
  const fs::path folder = run / train::kCheckpointFolder;
  std::vector<checkpoint::ExtraFile> files;
  files.push_back({.name = kProgressFile, .text = to_json(progress)});
  if (buffer != nullptr) {
    files.push_back(
        {.name = kRowsFile, .text = {}, .write = [&](const fs::path& path) { replay::save_snapshot(*buffer, path); }});
  }
  for (const auto& [version, network] : progress.versions) {
    files.push_back({.name = version_file(version), .text = {}, .tensors = network->tensors()});
  }
  if (progress.rated.network != nullptr) {
    files.push_back({.name = kRatedFile, .text = {}, .tensors = progress.rated.network->tensors()});
  }
  const fs::path path = checkpoint::save(folder, learner.tensors(), state,
                                         network_json(config.selfplay.game, learner.model().config()), files);
  checkpoint::remove_old(folder, state.step, {.keep = config.checkpoint.keep, .keep_best = false});
  return path;
}

Progress load_checkpoint(const checkpoint::Checkpoint& saved, const Learner& learner, replay::ReplayBuffer* buffer) {
  saved.load(learner.tensors());
  const checkpoint::StateFile state = checkpoint::read_state(saved.path());
  const nn::BoardConfig& config = learner.model().config();
  const auto load = [&](const std::string& name) {
    const safetensors::File file = checkpoint::open_tensors(saved.path(), state, name);
    return std::make_shared<Network>(config, file, saved.path() / name);
  };
  Progress progress;
  read_json(checkpoint::read_text(saved.path(), state, kProgressFile), saved.path() / kProgressFile, progress);
  if (buffer != nullptr) {
    replay::load_snapshot(*buffer, checkpoint::verified_file(saved.path(), state, kRowsFile));
  }
  for (const auto& [name, stamp] : state.files) {
    if (const auto version = version_of(name)) progress.versions.push_back({*version, load(name)});
  }
  if (state.files.contains(kRatedFile)) progress.rated.network = load(kRatedFile);
  return progress;
}

}  // namespace quern::learn
