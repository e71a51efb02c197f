#include "config/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <string>

#include "config/config_fields.h"
#include "config/data_sources.h"
#include "config/history.h"
#include "config/synonyms.h"
#include "core/error.h"
#include "core/text.h"

namespace quern::train {
namespace {

// Rounded to 15 digits, so that a tenth of 1e-5 is printed as 1e-06 and not as 1.0000000000000002e-06.
double tenth(double rate) {
  const std::string digits = fmt::format("{:.15g}", rate / 10);
  double value = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return value;
}

void check_init(const RunConfig::Init& init) {
  if (!is_utf8(init.from)) {
    throw Error("[config] init.from: expected a name in UTF-8, the only encoding that TOML supports, found {}",
                in_quotes(init.from));
  }
  if (init.from.empty() && !init.weights_hash.empty()) {
    throw Error(
        "[config] init.weights_hash: expected init.from as well, the checkpoint with these weights, found none");
  }
}

// The settings that only some families have.
void check_family(const RunConfig::Model& model) {
  constexpr std::string_view kGpt2Only[] = {"norm", "positions", "activation", "qk_norm", "logit_cap"};
  constexpr std::string_view kLlamaOnly[] = {"kv_heads", "head_dim", "attention_bias", "mlp_bias"};
  const bool gpt2 = model.family == nn::Family::kGpt2;
  RunConfig config;
  config.model = model;
  for (const Field& field : fields()) {
    const auto is_field = [&](std::string_view name) { return field.table == "model" && field.name == name; };
    const bool foreign = gpt2 ? std::ranges::any_of(kLlamaOnly, is_field) : std::ranges::any_of(kGpt2Only, is_field);
    if (!foreign || value_text(field, config) == value_text(field, {})) continue;
    throw Error("[config] {}: expected {} for model.family={}, which does not have this setting, found {}",
                field.path(), value_text(field, {}), family_name(model.family), value_text(field, config));
  }
  if (model.family == nn::Family::kQwen2 && (model.attention_bias || model.mlp_bias)) {
    throw Error("[config] model.{}: expected false for model.family=qwen2, whose biases are fixed, found true",
                model.mlp_bias ? "mlp_bias" : "attention_bias");
  }
  if (model.family == nn::Family::kQwen3 && model.mlp_bias) {
    throw Error("[config] model.mlp_bias: expected false for model.family=qwen3, which has none, found true");
  }
  if (model.kv_heads != 0 && model.heads % model.kv_heads != 0) {
    throw Error("[config] model.kv_heads: expected a divisor of model.heads, which is {}, found {}", model.heads,
                model.kv_heads);
  }
}

void check_rotary(const RunConfig::Model& model) {
  if (model.family == nn::Family::kGpt2 && model.positions != nn::Positions::kRotary) return;
  const uint64_t head_dim = model.head_dim == 0 ? model.width / model.heads : model.head_dim;
  if (head_dim % 2 != 0) {
    throw Error(
        "[config] model.{}: expected an even number per head for rotary positions, found {}",
        model.head_dim == 0 ? "width" : "head_dim",
        model.head_dim == 0 ? fmt::format("{} / {} heads", model.width, model.heads) : fmt::format("{}", head_dim));
  }
  if (model.rope_scaling == nn::RotaryScaling::kLlama3 && model.rope_high_frequency <= model.rope_low_frequency) {
    throw Error(
        "[config] model.rope_high_frequency: expected more than model.rope_low_frequency, which is {}, found {}",
        model.rope_low_frequency, model.rope_high_frequency);
  }
}

void check_model(const RunConfig::Model& model) {
  if (model.head_dim == 0 && model.width % model.heads != 0) {
    throw Error("[config] model.width: expected a multiple of model.heads, which is {}, found {}", model.heads,
                model.width);
  }
  check_family(model);
  check_rotary(model);
  if (model.max_context != 0 && model.max_context < model.context) {
    throw Error("[config] model.max_context: expected 0 or at least model.context, which is {}, found {}",
                model.context, model.max_context);
  }
  constexpr double kMinCap = 1e-3;  // far below any logit; a cap must have a reciprocal in fp32
  if (model.logit_cap > 0 && model.logit_cap < kMinCap) {
    throw Error("[config] model.logit_cap: expected 0 or at least {}, found {}", kMinCap, model.logit_cap);
  }
}

void check_optimizer(const RunConfig::Optimizer& optimizer, uint64_t steps) {
  if (optimizer.schedule != Schedule::kConstant && optimizer.min_rate > optimizer.rate) {
    throw Error(
        "[config] optimizer.min_rate: expected at most optimizer.rate, which is {}, found {}; add --set "
        "optimizer.min_rate={}",
        optimizer.rate, optimizer.min_rate, tenth(optimizer.rate));
  }
  if (optimizer.kind == OptimizerRule::kMuon && optimizer.rate == 0) {
    throw Error(
        "[config] optimizer.rate: expected more than 0 with optimizer.kind=muon, whose rates follow it, found 0");
  }
  constexpr double kRounding = 1e-3;  // 100 * (1 - 0.8) is less than 20
  const auto stable = static_cast<uint64_t>(static_cast<double>(steps) * (1 - optimizer.cooldown) + kRounding);
  if (optimizer.schedule == Schedule::kWsd && optimizer.warmup > stable && steps > 0) {
    throw Error(
        "[config] optimizer.warmup: expected at most {} of {} steps before the cooldown, found {}; lower warmup or "
        "cooldown, or use more steps",
        stable, steps, optimizer.warmup);
  }
}

// `vocabulary` is model.vocabulary.
void check_data(const RunConfig::Data& data, uint64_t vocabulary) {
  // Of a compressed stream, every n-th piece is held out. Looking for the next one takes n steps.
  constexpr double kMinFraction = 1e-6;
  if (data.validation_fraction > 0 && data.validation_fraction < kMinFraction) {
    throw Error("[config] data.validation_fraction: expected 0 or at least {}, found {}", kMinFraction,
                data.validation_fraction);
  }
  if (data.tokenizer == TokenizerKind::kBpe && vocabulary != 0 && vocabulary < data.vocabulary) {
    throw Error("[config] model.vocabulary: expected 0 or at least data.vocabulary, which is {}, found {}",
                data.vocabulary, vocabulary);
  }
  for (const std::string& path : data.paths) {
    if (path.empty()) throw Error("[config] data.paths: expected the name of a file or folder, found an empty one");
    if (!is_utf8(path)) {
      throw Error("[config] data.paths: expected names in UTF-8, the only encoding that TOML supports, found {}",
                  in_quotes(path));
    }
  }
  if (!is_utf8(data.tokenizer_file)) {
    throw Error("[config] data.tokenizer: expected a name in UTF-8, the only encoding that TOML supports, found {}",
                in_quotes(data.tokenizer_file));
  }
  for (const std::string& source : data.sources) parse_source(source);
  if (!data.sources.empty() && !data.paths.empty()) {
    throw Error(
        "[config] data.sources: expected none together with data.paths (DATA), which is {}, found {}; "
        "give one of the two",
        in_quotes(data.paths.front()), in_quotes(data.sources.front()));
  }
  if (data.shuffle > 0 && data.sampling != Sampling::kStream) {
    throw Error(
        "[config] data.shuffle: expected 0 without data.sampling=stream, because {} sampling shuffles, found {}",
        data.sampling == Sampling::kRandom ? "random" : "epoch", data.shuffle);
  }
}

void check_lora(const RunConfig& config) {
  if (!config.is_adapted()) return;
  if (config.init.from.empty()) {
    throw Error(
        "[config] lora.rank: expected 0 without a trained model to adapt, found {}; use `quern finetune --base MODEL`",
        config.lora.rank);
  }
  if (!config.train.freeze.empty()) {
    throw Error("[config] train.freeze: expected none with lora.rank, which trains nothing but adapters, found {}",
                in_quotes(config.train.freeze.front()));
  }
}

void check_chat(const RunConfig::Data& data) {
  if (data.format != DataFormat::kChat) {
    if (data.epochs == 0) return;
    throw Error("[config] data.epochs: expected 0 without data.format=chat, found {}; set train.steps", data.epochs);
  }
  const auto refuse = [](std::string_view field, std::string_view found) {
    throw Error("[config] {}: not possible with data.format=chat, found {}", field, found);
  };
  if (data.paths.empty()) throw Error("[config] data.paths: expected JSON Lines with data.format=chat, found none");
  if (!data.sources.empty()) refuse("data.sources", in_quotes(data.sources.front()));
  if (data.sampling == Sampling::kStream) refuse("data.sampling", "stream");
  if (data.broadcast) refuse("data.broadcast", "true");
}

// Games that are written in Python, and positions of actors that are.
void check_own_game(const RunConfig& config) {
  const RunConfig::Selfplay& play = config.selfplay;
  const bool sizes = config.has_own_game() || config.has_own_actors();
  if (sizes == play.sizes.empty()) {
    throw Error("[config] selfplay.sizes: expected {} of {}, found {}", sizes ? "the sizes" : "none", play.game,
                in_quotes(play.sizes));
  }
  if (sizes && play.processes > 0) {
    throw Error("[config] selfplay.processes: expected 0, as actors of {} are threads, found {}", play.game,
                play.processes);
  }
  if (!config.has_own_actors()) return;
  if (play.synchronous) throw Error("[config] selfplay.synchronous: expected false for positions, found true");
  if (play.rating_interval > 0) {
    throw Error("[config] selfplay.rating_interval: expected 0 for positions, which have no rules, found {}",
                play.rating_interval);
  }
}

// The settings that a board network, and a run that plays, do not have.
void check_selfplay(const RunConfig& config) {
  if (!config.is_selfplay()) return;
  check_own_game(config);
  constexpr std::string_view kModel[] = {"layers",      "heads", "width",      "context",
                                         "inner_width", "norm",  "activation", "norm_epsilon"};
  for (const Field& field : fields()) {
    const bool other = field.table == "data" || field.table == "lora" || field.table == "init" ||
                       (field.table == "model" && std::ranges::find(kModel, field.name) == std::end(kModel));
    if (!other || value_text(field, config) == value_text(field, {})) continue;
    throw Error("[config] {}: expected {} for a run of self-play, which does not have this setting, found {}",
                field.path(), value_text(field, {}), value_text(field, config));
  }
  if (config.diagnostics.policy == Policy::kRollback) {
    throw Error("[config] diagnostics.policy: expected stop or skip for a run of self-play, found rollback");
  }
  if (config.selfplay.synchronous && config.selfplay.processes > 0) {
    throw Error("[config] selfplay.processes: expected 0 with selfplay.synchronous=true, found {}",
                config.selfplay.processes);
  }
  if (!config.train.freeze.empty()) {
    throw Error("[config] train.freeze: expected none for a run of self-play, found {}",
                in_quotes(config.train.freeze.front()));
  }
}

}  // namespace

bool is_game_name(std::string_view name) {
  constexpr size_t kLongest = 64;
  const auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
  };
  return !name.empty() && name.size() <= kLongest && std::ranges::all_of(name, fits);
}

// The constant schedule does not use min_rate.
void lower_min_rate(RunConfig& config) {
  RunConfig::Optimizer& optimizer = config.optimizer;
  if (config.given.min_rate || optimizer.schedule == Schedule::kConstant || optimizer.min_rate <= optimizer.rate)
    return;
  optimizer.min_rate = tenth(optimizer.rate);
}

void validate_settings(const RunConfig& config) {
  const RunConfig::Model& model = config.model;
  check_model(model);
  if (const uint64_t sequences = config.train.batch * config.train.accumulation; sequences > UINT32_MAX) {
    throw Error("[config] train.batch x train.accumulation: expected at most {} sequences, found {}", UINT32_MAX,
                sequences);
  } else if (config.train.lanes > sequences) {
    throw Error(
        "[config] train.lanes: expected at most the sequences of a step, train.batch x train.accumulation = {}, found "
        "{}",
        sequences, config.train.lanes);
  }
  if (config.train.recompute.interval > model.layers) {
    throw Error("[config] train.recompute: expected an interval of at most model.layers, which is {}, found {}",
                model.layers, config.train.recompute.interval);
  }
  check_optimizer(config.optimizer, config.train.steps);
  check_data(config.data, model.vocabulary);
  if (config.log.histogram_interval > 0 && !config.log.tensorboard) {
    throw Error("[config] log.histogram_interval: expected 0 without log.tensorboard, which shows them, found {}",
                config.log.histogram_interval);
  }
  check_init(config.init);
  check_lora(config);
  check_chat(config.data);
  check_selfplay(config);
}

void validate(const RunConfig& config) {
  validate_settings(config);
  check_history(config);
}

void resolve_paths(RunConfig& config) {
  validate_settings(config);
  const auto resolve = [](std::string& path) { path = std::filesystem::absolute(path).lexically_normal().string(); };
  for (std::string& path : config.data.paths) resolve(path);
  if (!config.data.chat_template.empty() && config.data.chat_template != "chatml") resolve(config.data.chat_template);
  if (config.data.tokenizer == TokenizerKind::kFile) resolve(config.data.tokenizer_file);
  for (std::string& text : config.data.sources) {
    WeightedSource source = parse_source(text);
    resolve(source.paths.front());
    text = to_text(source);
  }
}

}  // namespace quern::train
