#include "diagnose/incident.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/json.h"
#include "core/sha256.h"
#include "core/text.h"
#include "kernels/cross_entropy.h"
#include "kernels/target.h"

namespace quern::train {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr const char* kIncidentFile = "incident.json";
constexpr const char* kBatchFile = "batch.safetensors";
constexpr const char* kRunFile = "run.toml";
constexpr uint64_t kVersion = 1;
constexpr std::array<std::string_view, 4> kTroubles = {"none", "loss", "gradient", "spike"};

Json place_json(const std::optional<BadPlace>& where) {
  if (!where) return nullptr;
  return {{"tensor", where->tensor}, {"kind", kind_of(*where)}, {"sequence", where->sequence}};
}

std::string to_json(const Incident& incident) {
  const TrainerState& before = incident.before;
  const Json json = {{"version", kVersion},
                     {"step", incident.step},
                     {"trouble", trouble_name(incident.trouble)},
                     {"loss", number_text(incident.loss)},
                     {"spike_z", number_text(incident.spike_z)},
                     {"gradient_norm", number_text(incident.gradient_norm)},
                     {"gradient_hash", incident.gradient_hash},
                     {"left_out", before.left_out},
                     {"weight", place_json(incident.findings.weight)},
                     {"first_bad", place_json(incident.findings.pass)},
                     {"worst_sequence", incident.worst_sequence},
                     {"worst_loss", number_text(incident.worst_loss)},
                     {"target", incident.target}};
  return json_text(json, 2) + "\n";
}

// Checked access to the fields of incident.json.
class Fields {
 public:
  Fields(const Json& object, std::string file) : object_(object), file_(std::move(file)) {
    if (!object.is_object()) throw Error("[incident] {}: expected a JSON object, found something else", file_);
  }

  const Json& at(const char* key) const {
    if (!object_.contains(key)) throw Error("[incident] {}: {}: expected this field, found none", file_, key);
    return object_[key];
  }
  uint64_t whole(const char* key, uint64_t max = UINT64_MAX) const {
    if (!at(key).is_number_unsigned()) fail(key, "a whole number from 0");
    if (at(key).get<uint64_t>() > max) fail(key, fmt::format("at most {}", max));
    return at(key).get<uint64_t>();
  }
  std::string text(const char* key) const {
    if (!at(key).is_string()) fail(key, "text");
    return printable(at(key).get<std::string>());
  }
  double number(const char* key) const {
    const std::string digits = text(key);
    double value = 0;
    const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (code != std::errc() || end != digits.data() + digits.size()) fail(key, "a number as text");
    return value;
  }
  std::optional<BadPlace> where(const char* key) const {
    if (at(key).is_null()) return std::nullopt;
    const Fields fields(at(key), file_);
    return BadPlace{
        .tensor = fields.text("tensor"), .nan = fields.text("kind") == "NaN", .sequence = fields.whole("sequence")};
  }
  [[noreturn]] void fail(const char* key, std::string_view expected) const {
    throw Error("[incident] {}: {}: expected {}, found {}", file_, key, expected, in_quotes(json_text(at(key)), 40));
  }

 private:
  const Json& object_;
  std::string file_;
};

// Checks sequence indices against the number of sequences per step in the run's config.
void check_sequences(const Incident& incident, const RunConfig& config, const fs::path& path) {
  const uint64_t sequences = config.train.batch * config.train.accumulation;
  const auto check = [&](std::string_view field, uint64_t found) {
    if (found < sequences) return;
    throw Error("[incident] {}: {}: expected a sequence below {}, found {}", path.native(), field, sequences, found);
  };
  check("worst_sequence", incident.worst_sequence);
  if (incident.findings.weight) check("weight.sequence", incident.findings.weight->sequence);
  if (incident.findings.pass) check("first_bad.sequence", incident.findings.pass->sequence);
}

Incident parse_incident(const std::string& text, const fs::path& path, const checkpoint::State& state) {
  const Json json = parse_ordered_json(text);
  const Fields fields(json, path.native());
  if (fields.whole("version") != kVersion) fields.fail("version", std::to_string(kVersion));
  Incident incident{.step = fields.whole("step"),
                    .loss = fields.number("loss"),
                    .gradient_norm = fields.number("gradient_norm"),
                    .spike_z = fields.number("spike_z"),
                    .gradient_hash = fields.text("gradient_hash"),
                    .findings = {.weight = fields.where("weight"), .pass = fields.where("first_bad")},
                    .worst_sequence = fields.whole("worst_sequence"),
                    .worst_loss = fields.number("worst_loss"),
                    .target = fields.text("target")};
  if (incident.step == 0 || incident.step != state.step) fields.fail("step", std::to_string(state.step));
  const auto* trouble = std::find(kTroubles.begin() + 1, kTroubles.end(), fields.text("trouble"));
  if (trouble == kTroubles.end()) fields.fail("trouble", "loss, gradient or spike");
  incident.trouble = static_cast<Trouble>(trouble - kTroubles.begin());
  incident.gradient_scale = state.loss_scale;
  incident.before = {.steps = incident.step - 1,
                     .left_out = fields.whole("left_out", checkpoint::kMaxSteps),
                     .updates = state.updates};
  return incident;
}

safetensors::Tensor tokens_tensor(std::string name, const std::vector<int32_t>& tokens, size_t context) {
  return {
      std::move(name), safetensors::Dtype::kI32, {tokens.size() / context, context}, std::as_bytes(std::span(tokens))};
}

std::vector<int32_t> read_tokens(const fs::path& path, const safetensors::File& file, std::string_view name,
                                 const RunConfig& config, uint32_t vocabulary) {
  const std::vector<size_t> shape = {config.train.batch * config.train.accumulation, config.model.context};
  const safetensors::Tensor* tensor = file.find(name);
  if (tensor == nullptr || tensor->dtype != safetensors::Dtype::kI32 || tensor->shape != shape) {
    throw Error("[incident] {}: expected tensor {} of type I32 and shape ({}, {}), found {}", path.native(), name,
                shape[0], shape[1], tensor == nullptr ? "none" : "another");
  }
  std::vector<int32_t> tokens(shape[0] * shape[1]);
  std::memcpy(tokens.data(), tensor->bytes.data(), tensor->bytes.size());
  file.check_intact();
  for (const int32_t token : tokens) {
    const bool ignored = name == "targets" && token == kernels::kIgnoreTarget;
    if (ignored || (token >= 0 && static_cast<uint32_t>(token) < vocabulary)) continue;
    throw Error("[incident] {}: {}: expected tokens below {}, found {}", path.native(), name, vocabulary, token);
  }
  return tokens;
}

uint32_t vocabulary_of(const fs::path& path, const safetensors::File& model) {
  const safetensors::Tensor* table = model.find("wte.weight");
  if (table == nullptr || table->shape.size() != 2 || table->shape[0] > UINT32_MAX) {
    throw Error("[incident] {}: expected a matrix wte.weight, found none", (path / "model.safetensors").native());
  }
  return static_cast<uint32_t>(table->shape[0]);
}

// Limits the width: a file may contain 1e308, which has 309 digits.
std::string deviations_text(double z) {
  return std::abs(z) < 1e6 ? fmt::format("{:.1f}", z) : fmt::format("{:.4g}", z);
}

std::string describe(const BadPlace& where, uint64_t sequences, uint64_t at_once) {
  return fmt::format("first {}: {}, sequence {} of {}, micro-batch {} of {}", kind_of(where), where.tensor,
                     where.sequence + 1, sequences, where.sequence / at_once + 1, (sequences + at_once - 1) / at_once);
}

}  // namespace

std::string_view trouble_name(Trouble trouble) { return kTroubles[static_cast<size_t>(trouble)]; }

std::string number_text(double value) { return std::isnan(value) ? "nan" : fmt::format("{}", value); }

std::string gradient_hash(const ParameterLayout& layout, std::span<const float> values, double scale) {
  constexpr uint32_t kNan = 0x7FC00000;
  Sha256 hash;
  std::array<uint32_t, 1024> bits;
  for (const TensorInfo& tensor : layout.tensors()) {
    for (size_t i = 0; i < tensor.size; i += bits.size()) {
      const size_t n = std::min(bits.size(), tensor.size - i);
      for (size_t k = 0; k < n; ++k) {
        const float value = values[tensor.offset + i + k] * static_cast<float>(scale);
        bits[k] = std::isnan(value) ? kNan : std::bit_cast<uint32_t>(value);
      }
      hash.update(std::as_bytes(std::span(bits.data(), n)));
    }
  }
  return to_hex(hash.finish());
}

std::string describe(const Incident& incident, uint64_t sequences, uint64_t at_once) {
  std::string text = fmt::format("step {}: ", incident.step);
  if (incident.trouble == Trouble::kLoss) {
    text += fmt::format("the loss is {}", std::isnan(incident.loss) ? "NaN" : "infinite");
  } else if (incident.trouble == Trouble::kGradient) {
    text += fmt::format("the gradient's norm is {}", std::isnan(incident.gradient_norm) ? "NaN" : "infinite");
  } else {
    text += fmt::format(
        "the loss is {:.4g}, {} standard deviations above the previous ones, highest in sequence {} of {} ({:.4g})",
        incident.loss, deviations_text(incident.spike_z), incident.worst_sequence + 1, sequences, incident.worst_loss);
  }
  const auto& [weight, pass] = incident.findings;
  if (weight) text += fmt::format("; {} contains {} before the step", weight->tensor, kind_of(*weight));
  if (pass) text += fmt::format("; {}", describe(*pass, sequences, at_once));
  return text;
}

fs::path save_incident(const fs::path& folder, const Incident& incident, const StepRecord& record) {
  checkpoint::State state = record.state;
  state.step = incident.step;
  state.updates = incident.before.updates;
  state.loss_scale = incident.gradient_scale;
  const data::StreamPosition& where = incident.before.position;
  if (state.stream) state.stream = checkpoint::StreamPosition{.piece = where.piece, .token = where.token};
  const size_t context = record.config.model.context;
  const std::vector<checkpoint::ExtraFile> extras = {{kIncidentFile, to_json(incident)},
                                                     {kRunFile, to_toml(record.config)},
                                                     {kBatchFile,
                                                      {},
                                                      {tokens_tensor("inputs", record.tokens.inputs, context),
                                                       tokens_tensor("targets", record.tokens.targets, context)}}};
  const ModelConfig& model = record.model;
  return checkpoint::save(folder, record.tensors, state,
                          {.layers = model.layers,
                           .heads = model.heads,
                           .width = model.width,
                           .context = model.context,
                           .vocabulary = model.vocabulary,
                           .dropout = record.config.model.dropout},
                          extras);
}

RecordedIncident load_incident(fs::path path) {
  if (fs::is_regular_file(path)) path = path.parent_path().empty() ? fs::path(".") : path.parent_path();
  if (!fs::exists(path / "state.json")) {
    throw Error("[incident] {}: expected the folder of an incident (runs/NAME/incidents/step-NNNNNNNN), found none",
                path.native());
  }
  const checkpoint::StateFile state = checkpoint::read_state(path);
  if (!state.files.contains(kIncidentFile)) {
    throw Error("[incident] {}: expected an incident, found a checkpoint without {}", path.native(), kIncidentFile);
  }
  Incident incident =
      parse_incident(checkpoint::read_text(path, state, kIncidentFile), path / kIncidentFile, state.state);
  RunConfig config;
  apply_toml(config, checkpoint::read_text(path, state, kRunFile), (path / kRunFile).native());
  validate(config);
  check_sequences(incident, config, path / kIncidentFile);
  checkpoint::Checkpoint found(path);
  const uint32_t vocabulary = vocabulary_of(path, found.model());
  const safetensors::File batch = checkpoint::open_tensors(path, state, kBatchFile);
  StepTokens tokens{.inputs = read_tokens(path / kBatchFile, batch, "inputs", config, vocabulary),
                    .targets = read_tokens(path / kBatchFile, batch, "targets", config, vocabulary)};
  return {std::move(incident), std::move(config), vocabulary, std::move(tokens), std::move(found)};
}

}  // namespace quern::train
