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

namespace quern::train {

enum class OptimizerRule : uint8_t { kAdamW, kMuon };
enum class Schedule : uint8_t { kCosine, kLinear, kConstant, kWsd };
enum class TokenizerKind : uint8_t { kByte, kChar, kBpe };
enum class Sampling : uint8_t { kRandom, kEpoch, kStream };
enum class Precision : uint8_t { kFp32, kBf16, kFp16 };
enum class Policy : uint8_t { kStop, kSkip, kRollback };

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
    bool operator==(const Model&) const = default;
  };
  struct Train {
    uint64_t steps = 1000;
    uint64_t batch = 16;
    uint64_t accumulation = 1;
    uint64_t seed = 1;
    Precision precision = Precision::kFp32;
    Recompute recompute;
    uint64_t memory = 0;
    uint64_t threads = 0;
    bool pin = false;
    uint64_t validation_interval = 100;
    uint64_t validation_batches = 20;
    bool operator==(const Train&) const = default;
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
    uint64_t vocabulary = 8192;
    double validation_fraction = 0.1;
    Sampling sampling = Sampling::kRandom;
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
    bool operator==(const Log&) const = default;
  };
  struct Diagnostics {
    uint64_t health_interval = 100;
    double spike_z = 0;
    Policy policy = Policy::kStop;
    uint64_t incident_limit = 10;
    bool operator==(const Diagnostics&) const = default;
  };

  Model model;
  Train train;
  Optimizer optimizer;
  Data data;
  Checkpoint checkpoint;
  Log log;
  Diagnostics diagnostics;

  uint64_t sequences_per_step() const { return train.batch * train.accumulation; }
  // Whether something with this interval, which also happens after the last step, happens after `step`.
  bool is_due(uint64_t interval, uint64_t step) const {
    return step == train.steps || (interval > 0 && step % interval == 0);
  }
  bool operator==(const RunConfig&) const = default;
};

// fp32, bf16 or fp16, as written in files.
std::string_view precision_name(Precision precision);

std::vector<std::string_view> tokenizer_kind_names();  // "byte", "char", "bpe"
TokenizerKind tokenizer_kind(std::string_view name);   // `name` must be one of these
// stop, skip or rollback.
std::string_view policy_name(Policy policy);

// tiny, small or gpt2. Error, listing them, for any other name.
RunConfig preset(std::string_view name);
std::vector<std::string_view> preset_names();

// Sets the fields that the TOML text contains and leaves the others unchanged. Error with `file`:line:column for a
// syntax error, an unknown name (with a suggestion), a wrong type, or a value out of range; `config` is then unchanged.
void apply_toml(RunConfig& config, std::string_view text, std::string_view file);

// The same for the contents of a file of at most 1 MB.
void apply_toml_file(RunConfig& config, const std::filesystem::path& path);

// Whether a TOML file of at most 1 MB sets `field`, such as "train.seed". Error if it is not TOML.
bool sets_field(const std::filesystem::path& path, std::string_view field);

// Applies one "table.name=value", as after --set. Text needs no quotation marks; a list is ["a", "b"] or a single item.
// `where` names the source in messages; it is empty for --set. Otherwise the value comes from a flag, which accepts
// only decimal digits for integers.
void apply_setting(RunConfig& config, std::string_view setting, std::string_view where = {});

// The same for a typed value, for bindings to other languages; `path` is "table.name". A string is also accepted as a
// list of one item.
using SettingValue = std::variant<bool, int64_t, double, std::string, std::vector<std::string>>;
void apply_value(RunConfig& config, std::string_view path, const SettingValue& value, std::string_view where);

// Checks constraints between fields, such as width being a multiple of heads. Error names both fields.
void validate(const RunConfig& config);

// validate(), and makes the data paths absolute, so that the run can be resumed from any directory.
void resolve_paths(RunConfig& config);

// Whether a resumed run may use a different value of this setting ("train.threads").
bool may_change(std::string_view path);

// Error, naming the first, if settings that must not change differ from those the run was started with.
void check_resumable(const RunConfig& started, const RunConfig& config);

// All fields, with comments on their meaning and allowed values. Parsing the text gives the same config.
std::string to_toml(const RunConfig& config);

}  // namespace quern::train
