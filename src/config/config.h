// The configuration of a run (config.toml): all settings that determine its result, and a few that do not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "config/recompute.h"
#include "nn/layers/kinds.h"

namespace quern::train {

enum class OptimizerRule : uint8_t { kAdamW, kMuon };
enum class Schedule : uint8_t { kCosine, kLinear, kConstant, kWsd };
enum class TokenizerKind : uint8_t { kByte, kChar, kBpe, kFile };
enum class Sampling : uint8_t { kRandom, kEpoch, kStream };
enum class Precision : uint8_t { kFp32, kBf16, kFp16 };
enum class TextEncoding : uint8_t { kUtf8, kUtf16, kLatin1, kWindows1252, kBytes };
enum class Policy : uint8_t { kStop, kSkip, kRollback };
enum class DataFormat : uint8_t { kText, kChat };

inline constexpr uint64_t kMaxLanes = 1024;

// Values of selfplay.game besides the names of games: rules of the caller's, "python:NAME", and no rules at all, but
// positions from actors of the caller's.
inline constexpr std::string_view kOwnGamePrefix = "python:";
inline constexpr std::string_view kOwnPositions = "positions";

// Whether it may follow kOwnGamePrefix: 1 to 64 letters, digits, - and _.
bool is_game_name(std::string_view name);

// The table in config_fields.cc documents each field and its allowed values; parsing, printing and flags are derived
// from it. Defaults are those of the preset tiny. To add a field, add a member here and a row there.
struct RunConfig {
  struct Model {
    uint64_t layers = 4;
    uint64_t heads = 4;
    uint64_t width = 128;
    uint64_t context = 128;
    uint64_t vocabulary = 0;
    double dropout = 0.0;
    nn::Family family = nn::Family::kGpt2;
    uint64_t max_context = 0;
    uint64_t inner_width = 0;
    uint64_t kv_heads = 0;
    uint64_t head_dim = 0;
    bool attention_bias = false;
    bool mlp_bias = false;
    double norm_epsilon = 1e-5;
    double rope_base = 10000.0;
    nn::RotaryScaling rope_scaling = nn::RotaryScaling::kNone;
    double rope_factor = 1.0;
    double rope_low_frequency = 1.0;
    double rope_high_frequency = 4.0;
    uint64_t rope_original_context = 8192;
    nn::NormKind norm = nn::NormKind::kLayernorm;
    nn::Positions positions = nn::Positions::kLearned;
    nn::Activation activation = nn::Activation::kGelu;
    bool qk_norm = false;
    bool zero_projections = false;
    double embedding_deviation = 0.02;
    bool tied_output = true;
    double logit_cap = 0.0;
    bool operator==(const Model&) const = default;
  };
  struct Train {
    uint64_t steps = 1000;
    uint64_t batch = 16;
    uint64_t accumulation = 1;
    uint64_t lanes = 0;  // see RunConfig::lanes()
    uint64_t seed = 1;
    Precision precision = Precision::kFp32;
    Recompute recompute;
    uint64_t memory = 0;
    uint64_t threads = 0;
    bool pin = false;
    uint64_t validation_interval = 100;
    uint64_t validation_batches = 20;
    std::vector<std::string> freeze;
    bool operator==(const Train&) const = default;
  };
  struct Lora {
    uint64_t rank = 0;
    double alpha = 32.0;
    double dropout = 0.0;
    bool rslora = false;
    std::vector<std::string> targets = {"all"};
    bool operator==(const Lora&) const = default;
  };
  struct Optimizer {
    OptimizerRule kind = OptimizerRule::kAdamW;
    double rate = 2e-3;
    double min_rate = 2e-4;
    uint64_t warmup = 50;
    Schedule schedule = Schedule::kCosine;
    double cooldown = 0.5;
    double beta1 = 0.9;
    double beta2 = 0.99;
    double epsilon = 1e-8;
    double weight_decay = 0.1;
    double clip = 1.0;
    double matrix_rate = 0.02;
    double momentum = 0.95;
    uint64_t momentum_warmup = 300;
    bool operator==(const Optimizer&) const = default;
  };
  struct Data {
    std::vector<std::string> paths;
    uint64_t stories_bytes = 4'000'000;
    TokenizerKind tokenizer = TokenizerKind::kChar;
    std::string tokenizer_file;  // of kFile: a tokenizer.json. Read when the run starts; resuming uses the run's copy
    uint64_t vocabulary = 8192;
    double validation_fraction = 0.1;
    Sampling sampling = Sampling::kRandom;
    TextEncoding encoding = TextEncoding::kUtf8;
    std::string field = "text";
    uint64_t shuffle = 0;
    std::vector<std::string> sources;
    bool broadcast = false;
    DataFormat format = DataFormat::kText;
    bool packing = true;
    uint64_t epochs = 0;
    std::string chat_template;
    bool operator==(const Data&) const = default;
  };
  struct Checkpoint {
    uint64_t interval = 250;
    uint64_t keep = 2;
    bool keep_best = true;
    bool operator==(const Checkpoint&) const = default;
  };
  struct Log {
    uint64_t interval = 10;
    bool tensorboard = false;
    uint64_t histogram_interval = 0;
    uint64_t sample_interval = 250;
    std::string sample_prompt;
    bool operator==(const Log&) const = default;
  };
  struct Diagnostics {
    uint64_t health_interval = 100;
    double spike_z = 0;
    Policy policy = Policy::kStop;
    uint64_t incident_limit = 10;
    bool operator==(const Diagnostics&) const = default;
  };

  // Of runs that learn a board game by self-play; `game` is empty for all others.
  struct Selfplay {
    std::string game;   // tictactoe, connect4, chess, kOwnGamePrefix and a name, or kOwnPositions
    std::string sizes;  // of the last two (learn/settings.h); empty for the others
    bool synchronous = true;
    uint64_t processes = 0;
    uint64_t generation_games = 500;
    uint64_t generation_steps = 60;
    uint64_t lag = 1;
    uint64_t rows = 50'000;
    bool symmetries = true;
    double value_weight = 1.0;
    uint64_t games_at_once = 256;
    uint64_t cache = 1 << 17;
    uint64_t simulations = 100;
    uint64_t cheap_simulations = 20;
    double full_share = 0.25;
    double c_puct = 1.5;
    double fpu_reduction = 0.2;
    bool reuse_tree = true;
    double noise_share = 0.25;
    double noise_alpha = 1.0;
    double temperature = 1.0;
    uint64_t temperature_moves = 10;
    double opening_share = 0.0;
    uint64_t opening_moves = 0;
    double winning_share = 0.0;
    double resign_below = -1.0;
    double resign_share = 0.9;
    double root_value_share = 0.0;
    double samples_per_row = 4.0;
    uint64_t rating_interval = 20;
    uint64_t rating_games = 40;
    bool operator==(const Selfplay&) const = default;
  };
  struct Dist {
    uint64_t check_interval = 100;
    bool operator==(const Dist&) const = default;
  };

  struct Init {
    std::string from;          // absolute path of a checkpoint once the run has started
    std::string weights_hash;  // of that checkpoint
    bool operator==(const Init&) const = default;
  };
  // A recorded value: the path of a setting, "train.steps", and its value as TOML.
  struct Setting {
    std::string path, value;
    bool operator==(const Setting&) const = default;
  };
  // From this step on, these settings applied.
  struct Change {
    uint64_t from_step = 1;
    std::vector<Setting> settings;
    bool operator==(const Change&) const = default;
  };
  // Not settings: whether these were set, rather than left at a default that yields to the rate or the steps.
  struct Given {
    bool min_rate = false, warmup = false;
    bool steps = false, epochs = false;  // other than in a file: a file that lists all settings has both
    bool operator==(const Given&) const { return true; }
  };

  Model model;
  Train train;
  Lora lora;
  Optimizer optimizer;
  Data data;
  Checkpoint checkpoint;
  Log log;
  Diagnostics diagnostics;
  Selfplay selfplay;
  Dist dist;
  Init init;
  std::vector<Change> history;  // config/history.h; empty if no setting ever changed
  Given given;

  bool is_adapted() const { return lora.rank > 0; }
  bool is_selfplay() const { return !selfplay.game.empty(); }
  bool has_own_game() const { return selfplay.game.starts_with(kOwnGamePrefix); }
  bool has_own_actors() const { return selfplay.game == kOwnPositions; }
  bool has_chat() const { return data.format == DataFormat::kChat; }
  uint64_t sequences_per_step() const { return train.batch * train.accumulation; }
  // Of one process. A run that starts records its number of lanes: with several ranks and train.lanes = 0, as many as
  // the next power of two.
  uint64_t lanes() const { return train.lanes == 0 ? 1 : train.lanes; }
  // Whether something with this interval, which also happens after the last step, happens after `step`.
  bool is_due(uint64_t interval, uint64_t step) const {
    return step == train.steps || (interval > 0 && step % interval == 0);
  }
  bool operator==(const RunConfig&) const = default;
};

// gpt2, llama, qwen2 or qwen3.
std::string_view family_name(nn::Family family);

// fp32, bf16 or fp16, as written in files.
std::string_view precision_name(Precision precision);

std::vector<std::string_view> tokenizer_kind_names();     // "byte", "char", "bpe"
TokenizerKind tokenizer_kind(std::string_view name);      // `name` must be one of these
std::string tokenizer_text(const RunConfig::Data& data);  // one of these, or the file
// stop, skip or rollback.
std::string_view policy_name(Policy policy);

// Error, listing the presets, for an unknown name.
RunConfig preset(std::string_view name);
std::vector<std::string_view> preset_names();
std::string preset_list();  // "tiny, small, ... or llama-small"

// The defaults for learning a game by self-play: tictactoe, connect4 or chess. Error for another name.
RunConfig selfplay_preset(std::string_view game);
// The same for a game with rules of the caller's. `sizes`: of its board and moves.
struct OwnGameSizes {
  size_t squares = 0, actions = 0, max_moves = 0;
};
RunConfig own_game_preset(std::string_view name, const OwnGameSizes& sizes);
// For training on positions of the caller's actors.
RunConfig positions_preset(size_t squares);

// Sets the fields, and the history, that the TOML text contains and leaves the others unchanged. Error with
// `file`:line:column for a syntax error, an unknown name (with a suggestion), a wrong type, or a value out of range;
// `config` is then unchanged.
void apply_toml(RunConfig& config, std::string_view text, std::string_view file);

// The same for the contents of a file of at most kMaxConfigBytes.
void apply_toml_file(RunConfig& config, const std::filesystem::path& path);

// Whether a TOML file of at most 1 MB sets `field`, such as "train.seed". Error if it is not TOML.
bool sets_field(const std::filesystem::path& path, std::string_view field);

// Applies one "table.name=value", as after --set. Text needs no quotation marks; a list is ["a", "b"] or a single item.
// `where` names the source in messages; it is empty for --set. Otherwise the value comes from a flag. Both accept
// integers as core/whole_number.h describes (1e3, 10_000); --set also accepts other bases, as TOML does.
void apply_setting(RunConfig& config, std::string_view setting, std::string_view where = {});

// The same for a typed value, for bindings to other languages; `path` is "table.name". A string is also accepted as a
// list of one item. A double is not accepted for an integer, even if it is whole (docs/python.md, "Numbers").
using SettingValue = std::variant<bool, int64_t, double, std::string, std::vector<std::string>>;
void apply_value(RunConfig& config, std::string_view path, const SettingValue& value, std::string_view where);

// Lowers a min_rate that was not given explicitly to a tenth of the rate if it is above the rate. The presets have the
// same proportion.
void lower_min_rate(RunConfig& config);

// Checks constraints between fields, such as width being a multiple of heads. Error names both fields. Not the history:
// settings that a run is resumed with are not in its history yet, and need not fit together with those of earlier
// steps.
void validate_settings(const RunConfig& config);

// validate_settings(), also of every entry of the history.
void validate(const RunConfig& config);

// validate_settings(), and makes the paths of data and tokenizer absolute, so that the run can be resumed from any
// directory.
void resolve_paths(RunConfig& config);

// The maximum size of a TOML file.
inline constexpr size_t kMaxConfigBytes = 1 << 20;

// All fields, with comments on their meaning and allowed values, and the history; without the tables that do not matter
// for this kind of run and have their defaults. Parsing the text gives the same config.
std::string to_toml(const RunConfig& config);

}  // namespace quern::train
