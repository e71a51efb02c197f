#include "diagnose/incident.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>

#include "config/model_settings.h"
#include "core/error.h"
#include "core/json_fields.h"
#include "core/sha256.h"
#include "core/text.h"
#include "evaluate/base_model.h"
#include "formats/hf_config.h"
#include "kernels/cross_entropy.h"
#include "kernels/target.h"
#include "nn/models/transformer.h"

namespace quern::train {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using OrderedJson = nlohmann::ordered_json;

constexpr const char* kIncidentFile = "incident.json";
constexpr const char* kBatchFile = "batch.safetensors";
constexpr const char* kRunFile = "run.toml";
constexpr uint64_t kVersion = 1;
constexpr std::array<std::string_view, 4> kTroubles = {"none", "loss", "gradient", "spike"};

OrderedJson bad_value_json(const std::optional<BadValue>& where) {
  if (!where) return nullptr;
  return {{"tensor", where->tensor}, {"kind", kind_of(*where)}, {"sequence", where->sequence}};
}

std::string to_json(const Incident& incident) {
  const OrderedJson json = {{"version", kVersion},
                            {"step", incident.step},
                            {"trouble", trouble_name(incident.trouble)},
                            {"loss", number_text(incident.loss)},
                            {"spike_z", number_text(incident.spike_z)},
                            {"gradient_norm", number_text(incident.gradient_norm)},
                            {"gradient_hash", incident.gradient_hash},
                            {"left_out", incident.before.skipped_steps},
                            {"weight", bad_value_json(incident.findings.weight)},
                            {"first_bad", bad_value_json(incident.findings.pass)},
                            {"worst_sequence", incident.worst_sequence},
                            {"worst_loss", number_text(incident.worst_loss)},
                            {"target", incident.target}};
  return json_text(json, 2) + "\n";
}

double number(const JsonFields& fields, const char* key) {
  const std::string digits = fields.text(key);
  double value = 0;
  const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (code != std::errc() || end != digits.data() + digits.size()) fields.fail(key, "a number as text");
  return value;
}

std::optional<BadValue> bad_value(const JsonFields& fields, const char* key) {
  if (fields.at(key).is_null()) return std::nullopt;
  const JsonFields where = fields.object(key);
  return BadValue{.tensor = printable(where.text("tensor")),
                  .nan = where.text("kind") == "NaN",
                  .sequence = where.whole("sequence", UINT64_MAX)};
}

// Checks sequence indices against the number of sequences per step in the run's config.
void check_sequences(const Incident& incident, const RunConfig& config, const fs::path& path) {
  const uint64_t sequences = config.sequences_per_step();
  const auto check = [&](std::string_view field, uint64_t found) {
    if (found < sequences) return;
    throw Error("[incident] {}: {}: expected a sequence below {}, found {}", path.native(), field, sequences, found);
  };
  check("worst_sequence", incident.worst_sequence);
  if (incident.findings.weight) check("weight.sequence", incident.findings.weight->sequence);
  if (incident.findings.pass) check("first_bad.sequence", incident.findings.pass->sequence);
}

// `state` is that of the incident's state.json.
Incident parse_incident(const std::string& text, const fs::path& path, const RunState& state) {
  const Json json = parse_json(text);
  if (!json.is_object()) throw Error("[incident] {}: expected a JSON object, found something else", path.native());
  const JsonFields fields(json, fmt::format("[incident] {}", path.native()));
  if (fields.whole("version", UINT64_MAX) != kVersion) fields.fail("version", std::to_string(kVersion));
  Incident incident{.step = fields.whole("step", UINT64_MAX),
                    .loss = number(fields, "loss"),
                    .gradient_norm = number(fields, "gradient_norm"),
                    .spike_z = number(fields, "spike_z"),
                    .gradient_hash = printable(fields.text("gradient_hash")),
                    .before = state,
                    .findings = {.weight = bad_value(fields, "weight"), .pass = bad_value(fields, "first_bad")},
                    .worst_sequence = fields.whole("worst_sequence", UINT64_MAX),
                    .worst_loss = number(fields, "worst_loss"),
                    .target = printable(fields.text("target"))};
  if (incident.step == 0 || incident.step != state.step) fields.fail("step", std::to_string(state.step));
  const auto* trouble = std::find(kTroubles.begin() + 1, kTroubles.end(), fields.text("trouble"));
  if (trouble == kTroubles.end()) fields.fail("trouble", "loss, gradient or spike");
  incident.trouble = static_cast<Trouble>(trouble - kTroubles.begin());
  incident.before.step = incident.step - 1;
  incident.before.skipped_steps = fields.whole("left_out", checkpoint::kMaxSteps);
  return incident;
}

safetensors::Tensor tokens_tensor(std::string name, const std::vector<int32_t>& tokens, size_t context) {
  return {
      std::move(name), safetensors::Dtype::kI32, {tokens.size() / context, context}, std::as_bytes(std::span(tokens))};
}

std::vector<int32_t> read_tokens(const fs::path& path, const safetensors::File& file, std::string_view name,
                                 const RunConfig& config, uint32_t vocabulary) {
  const std::vector<size_t> shape = {config.sequences_per_step(), config.model.context};
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

// Positions count from 0 in every document, and a sequence starts with one.
std::vector<int32_t> read_positions(const fs::path& path, const safetensors::File& file, const RunConfig& config) {
  if (file.find(kPositionsColumn) == nullptr) return {};
  const auto context = static_cast<size_t>(config.model.context);
  std::vector<int32_t> positions =
      read_tokens(path, file, kPositionsColumn, config, static_cast<uint32_t>(std::min<size_t>(context, UINT32_MAX)));
  for (size_t i = 0; i < positions.size(); ++i) {
    const int32_t next = i % context == 0 ? 0 : positions[i - 1] + 1;
    if (positions[i] == 0 || positions[i] == next) continue;
    throw Error("[incident] {}: positions: expected 0 or {} at {} of sequence {}, found {}", path.native(), next,
                i % context, i / context, positions[i]);
  }
  return positions;
}

// The model that the adapters of an incident belong to, in the directory of its run.
std::optional<checkpoint::Checkpoint> base_of(const fs::path& incident, const RunConfig& config) {
  if (!config.is_adapted()) return std::nullopt;
  return open_base(fs::absolute(incident).lexically_normal().parent_path().parent_path());
}

uint32_t vocabulary_of(const safetensors::File& model, const fs::path& path, const RunConfig& config) {
  const std::string name = nn::transformer_spec(model_config(config, 1)).embedding.tokens;
  const safetensors::Tensor* table = model.find(name);
  if (table == nullptr || table->shape.size() != 2 || table->shape[0] > UINT32_MAX) {
    throw Error("[incident] {}: expected a matrix {}, found none", (path / "model.safetensors").native(), name);
  }
  return static_cast<uint32_t>(table->shape[0]);
}

// Limits the width: a file may contain 1e308, which has 309 digits.
std::string deviations_text(double z) {
  return std::abs(z) < 1e6 ? fmt::format("{:.1f}", z) : fmt::format("{:.4g}", z);
}

// Finds the sequence with the highest mean loss, where NaN is higher than any number. Not the highest sum, which in
// packed conversations is that of the sequence with the most targets.
void find_worst(const StepContext& context, const StepTokens& tokens, Incident& incident) {
  for (size_t i = 0; i < context.losses.size(); ++i) {
    const double loss = tokens.mean_loss(i, context.config.model.context, context.losses[i]);
    if (i > 0 && loss <= incident.worst_loss) continue;
    incident.worst_sequence = i;
    incident.worst_loss = loss;
    if (std::isnan(loss)) return;
  }
}

std::string describe(const BadValue& where, const StepCut& cut) {
  return fmt::format("first {}: {}, sequence {} of {}, micro-batch {} of {}", kind_of(where), where.tensor,
                     where.sequence + 1, cut.sequences, cut.part_of(where.sequence) + 1, cut.micro_batches);
}

}  // namespace

std::string_view trouble_name(Trouble trouble) { return kTroubles[static_cast<size_t>(trouble)]; }

std::string number_text(double value) { return std::isnan(value) ? "nan" : fmt::format("{}", value); }

std::string gradient_hash(const nn::ParameterTable& layout, std::span<const float> values, double scale) {
  constexpr uint32_t kNan = 0x7FC00000;
  Sha256 hash;
  std::array<uint32_t, 1024> bits;
  for (const nn::Parameter& tensor : layout.all()) {
    if (!tensor.trainable) continue;  // has no gradient
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

Incident examine_incident(const StepContext& context, const StepReport& step, const StepTokens& tokens) {
  Incident incident{.step = step.step,
                    .trouble = step.trouble,
                    .loss = step.loss,
                    .gradient_norm = step.gradient_norm,
                    .spike_z = step.spike_z,
                    .gradient_hash = gradient_hash(context.model.parameters(), context.gradient.values()),
                    .before = context.before,
                    .target = kernels::current_target().name};
  find_worst(context, tokens, incident);
  if (step.trouble != Trouble::kSpike) incident.findings = examine(context, tokens, context.before);
  return incident;
}

std::string describe(const Incident& incident, const StepCut& cut) {
  std::string text = fmt::format("step {}: ", incident.step);
  if (incident.trouble == Trouble::kLoss) {
    text += fmt::format("the loss is {}", std::isnan(incident.loss) ? "NaN" : "infinite");
  } else if (incident.trouble == Trouble::kGradient) {
    text += fmt::format("the gradient's norm is {}", std::isnan(incident.gradient_norm) ? "NaN" : "infinite");
  } else {
    text += fmt::format(
        "the loss is {:.4g}, {} standard deviations above the previous ones, highest in sequence {} of {} ({:.4g})",
        incident.loss, deviations_text(incident.spike_z), incident.worst_sequence + 1, cut.sequences,
        incident.worst_loss);
  }
  const auto& [weight, pass] = incident.findings;
  if (weight) text += fmt::format("; {} contains {} before the step", weight->tensor, kind_of(*weight));
  if (pass) text += fmt::format("; {}", describe(*pass, cut));
  return text;
}

fs::path save_incident(const fs::path& folder, const Incident& incident, const StepRecord& record) {
  RunState state = incident.before;
  state.step = incident.step;
  const size_t context = record.config.model.context;
  state.count_data(record.config.sequences_per_step(), context);
  std::vector<safetensors::Tensor> batch = {tokens_tensor("inputs", record.tokens.inputs, context),
                                            tokens_tensor("targets", record.tokens.targets, context)};
  if (!record.tokens.positions.empty()) {
    batch.push_back(tokens_tensor(kPositionsColumn, record.tokens.positions, context));
  }
  const std::vector<checkpoint::ExtraFile> extras = {
      {kIncidentFile, to_json(incident)}, {kRunFile, to_toml(record.config)}, {kBatchFile, {}, std::move(batch)}};
  const formats::HfConfig config{.model = record.model, .dropout = record.config.model.dropout};
  return checkpoint::save(folder, record.tensors, state, formats::to_json(config), extras);
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
  std::optional<checkpoint::Checkpoint> base = base_of(path, config);
  const checkpoint::Checkpoint& model = base ? *base : found;
  const uint32_t vocabulary = vocabulary_of(model.model(), model.path(), config);
  const safetensors::File batch = checkpoint::open_tensors(path, state, kBatchFile);
  StepTokens tokens{.inputs = read_tokens(path / kBatchFile, batch, "inputs", config, vocabulary),
                    .targets = read_tokens(path / kBatchFile, batch, "targets", config, vocabulary),
                    .positions = read_positions(path / kBatchFile, batch, config)};
  return {std::move(incident), std::move(config), vocabulary, std::move(tokens), std::move(found), std::move(base)};
}

}  // namespace quern::train
