// Everything that decides the result of a run, and a little that does not: config.toml.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "train/recompute.h"

namespace quern::train {

enum class Schedule : uint8_t { kCosine, kLinear, kConstant };
enum class TokenizerKind : uint8_t { kByte, kChar, kBpe };
enum class Sampling : uint8_t { kRandom, kEpoch, kStream };
enum class Precision : uint8_t { kFp32, kBf16, kFp16 };
enum class Policy : uint8_t { kStop, kSkip, kRollback };

// What each field means, and the values it may have, stands in the table of config_fields.cc, from which parsing,
// printing and the flags are made. Defaults are those of the preset tiny. Another field: one member here, one row
// there.
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
    double rate = 2e-3;
    double min_rate = 2e-4;
    uint64_t warmup = 50;
    Schedule schedule = Schedule::kCosine;
    double beta1 = 0.9;
    double beta2 = 0.99;
    double epsilon = 1e-8;
    double weight_decay = 0.1;
    double clip = 1.0;
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

  bool operator==(const RunConfig&) const = default;
};

// fp32, bf16 or fp16, as in files.
std::string_view precision_name(Precision precision);

std::vector<std::string_view> tokenizer_kind_names();  // "byte", "char", "bpe"
TokenizerKind tokenizer_kind(std::string_view name);   // one of these names
// stop, skip or rollback.
std::string_view policy_name(Policy policy);

// tiny, small or gpt2; Error names them otherwise.
RunConfig preset(std::string_view name);
std::vector<std::string_view> preset_names();

// Overwrites the fields that the TOML text gives and leaves the others. Error with `file`:line:column for what is not
// TOML, an unknown name (and the nearest known one), a wrong type, a value out of range. `config` is then unchanged.
void apply_toml(RunConfig& config, std::string_view text, std::string_view file);

// The same for a file of at most 1 MB.
void apply_toml_file(RunConfig& config, const std::filesystem::path& path);

// Whether a TOML file of at most 1 MB sets `field`, as "train.seed". Error for what is not TOML.
bool sets_field(const std::filesystem::path& path, std::string_view field);

// One "table.name=value", as after --set. Text needs no quotation marks; a list is ["a", "b"] or a single item. `where`
// is for messages and empty for --set; else the value is that of an option, whose whole numbers are decimal digits.
void apply_setting(RunConfig& config, std::string_view setting, std::string_view where = {});

// The same for a value that is no text, as other languages have them; `path` is "table.name". A text alone may stand
// for a list of one.
using SettingValue = std::variant<bool, int64_t, double, std::string, std::vector<std::string>>;
void apply_value(RunConfig& config, std::string_view path, const SettingValue& value, std::string_view where);

// What no single field can tell: width a multiple of heads, and so on. Error names both fields.
void validate(const RunConfig& config);

// validate(), and whole paths of the data, so that the run can be resumed from any folder.
void settle(RunConfig& config);

// Whether a run may go on with another value of this setting ("train.threads") than it was started with.
bool may_change(std::string_view path);

// Error, naming the first, when settings that may not change differ from those that a run was started with.
void check_goes_on(const RunConfig& started, const RunConfig& config);

// Every field with a comment that says what it is for and which values it may have. Reading it gives the same config.
std::string to_toml(const RunConfig& config);

}  // namespace quern::train
