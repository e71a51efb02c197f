#include "checkpoint/state.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <variant>

#include "core/error.h"
#include "core/files.h"
#include "core/json_fields.h"
#include "core/text.h"

namespace quern::checkpoint {
namespace {

using Json = nlohmann::json;

constexpr uint64_t kVersion = 1;
constexpr std::array<std::string_view, 1> kGenerators = {"philox4x32-10"};
constexpr std::array<std::string_view, 3> kPrecisions = {"fp32", "bf16", "fp16"};

// Larger numbers, which no run reaches, would overflow in sums and products that use them.
constexpr uint64_t kMaxCount = INT64_MAX;
constexpr uint64_t kUpToStep = UINT64_MAX - 1;  // limit of a Count: the state's step
// Losses are sums of floats and not negative, except for rounding.
constexpr double kMinLoss = -1e-3, kMaxLoss = std::numeric_limits<float>::max();
constexpr double kMinScale = std::numeric_limits<float>::min(), kMaxScale = std::numeric_limits<float>::max();

// The types of a field: its member, its limits, its JSON.
struct Count {
  uint64_t& (*of)(RunState&);
  uint64_t max = kMaxCount;

  Json write(RunState& state) const { return of(state); }
  void read(const JsonFields& fields, const std::string& key, RunState& state) const {
    of(state) = fields.whole(key, max == kUpToStep ? state.step : max);
  }
};
struct Real {
  double& (*of)(RunState&);
  double min, max;

  Json write(RunState& state) const { return of(state); }
  void read(const JsonFields& fields, const std::string& key, RunState& state) const {
    of(state) = fields.real(key, min, max);
  }
};
struct OptionalLoss {
  std::optional<double>& (*of)(RunState&);

  Json write(RunState& state) const {
    const std::optional<double>& loss = of(state);
    return loss && std::isfinite(*loss) ? Json(*loss) : Json();
  }
  void read(const JsonFields& fields, const std::string& key, RunState& state) const {
    of(state) = fields.at(key).is_null() ? std::nullopt : std::optional(fields.real(key, kMinLoss, kMaxLoss));
  }
};
struct Hash {
  uint64_t& (*of)(RunState&);

  Json write(RunState& state) const { return fmt::format("{:016x}", of(state)); }
  void read(const JsonFields& fields, const std::string& key, RunState& state) const {
    of(state) = fields.hexadecimal(key);
  }
};
struct Choice {
  std::string& (*of)(RunState&);
  std::span<const std::string_view> allowed;

  Json write(RunState& state) const { return of(state); }
  void read(const JsonFields& fields, const std::string& key, RunState& state) const {
    of(state) = fields.choice(key, allowed);
  }
};
struct OptionalPosition {
  std::optional<data::StreamPosition>& (*of)(RunState&);

  Json write(RunState& state) const {
    const std::optional<data::StreamPosition>& position = of(state);
    if (!position) return {};
    if (position->sources.size() <= 1) return write_source(position->of(0));
    Json sources;
    for (size_t i = 0; i < position->sources.size(); ++i) sources[std::to_string(i)] = write_source(position->of(i));
    return {{"sources", sources}};
  }
  void read(const JsonFields& fields, const std::string& key, RunState& state) const {
    if (fields.at(key).is_null()) return;
    const JsonFields where = fields.object(key);
    data::StreamPosition position;
    if (where.contains("sources")) {
      const JsonFields sources = where.object("sources");
      for (size_t i = 0; sources.contains(std::to_string(i)); ++i) {
        position.sources.push_back(read_source(sources.object(std::to_string(i))));
      }
    } else {
      position.sources = {read_source(where)};
    }
    of(state) = position;
  }

 private:
  // `file` and `drawn` are 0 and omitted unless text is compressed, or shuffled or mixed.
  static Json write_source(const data::SourcePosition& source) {
    Json json = {{"piece", source.piece}, {"token", source.token}};
    if (source.file > 0) json["file"] = source.file;
    if (source.drawn > 0) json["drawn"] = source.drawn;
    return json;
  }
  static data::SourcePosition read_source(const JsonFields& fields) {
    const auto count = [&](const char* key) { return fields.contains(key) ? fields.whole(key, kMaxCount) : 0; };
    return {.file = count("file"),
            .piece = fields.whole("piece", kMaxCount),
            .token = fields.whole("token", kMaxCount),
            .drawn = count("drawn")};
  }
};

struct Field {
  std::string_view path;  // in the file
  std::variant<Count, Real, OptionalLoss, Hash, Choice, OptionalPosition> type;
  // Sets the value of older files, which lack the field or the whole group that it belongs to. Null if all files have
  // it.
  void (*older)(RunState&) = nullptr;
};

// Accessor of a member, or of a member of a member, as a function with an address.
template <auto... kMembers>
auto& reach(RunState& state) {
  return (state.*....*kMembers);
}

void keep_default(RunState&) {}
void count_every_step(RunState& state) { state.updates = state.step; }

using S = RunState;
constexpr Field kFields[] = {
    {"step", Count{reach<&S::step>, kMaxSteps}},
    {"updates", Count{reach<&S::updates>, kUpToStep}, count_every_step},
    {"tokens", Count{reach<&S::tokens>}},
    {"data_position", Count{reach<&S::data_position>}},
    {"stream", OptionalPosition{reach<&S::stream>}, keep_default},
    {"random.seed", Count{reach<&S::seed>, UINT64_MAX}},
    {"precision", Choice{reach<&S::precision>, kPrecisions}, keep_default},
    {"loss_scale", Real{reach<&S::loss_scale>, kMinScale, kMaxScale}},
    {"data.tokens", Count{reach<&S::data, &data::Fingerprint::tokens>}},
    {"data.hash", Hash{reach<&S::data, &data::Fingerprint::hash>}},
    {"loss", OptionalLoss{reach<&S::loss>}, keep_default},
    {"validation_loss", OptionalLoss{reach<&S::validation_loss>}},
    {"best_validation_loss", OptionalLoss{reach<&S::best_validation_loss>}},
    {"best_step", Count{reach<&S::best_step>, kUpToStep}},
    {"diagnostics.incidents", Count{reach<&S::incidents>, kMaxSteps}, keep_default},
    {"diagnostics.left_out", Count{reach<&S::skipped_steps>, kMaxSteps}, keep_default},
    {"diagnostics.losses.count", Count{reach<&S::losses, &LossTrend::count>, kUpToStep}, keep_default},
    {"diagnostics.losses.mean", Real{reach<&S::losses, &LossTrend::mean>, kMinLoss, kMaxLoss}, keep_default},
    {"diagnostics.losses.variance", Real{reach<&S::losses, &LossTrend::variance>, 0, kMaxLoss* kMaxLoss}, keep_default},
};

// "a.b.c" as a JSON pointer.
Json::json_pointer pointer_of(std::string_view path) {
  std::string text = fmt::format("/{}", path);
  std::replace(text.begin(), text.end(), '.', '/');
  return Json::json_pointer(text);
}

void read_at(const Field& field, const JsonFields& fields, std::string_view path, RunState& state) {
  const size_t dot = path.find('.');
  const std::string key(path.substr(0, dot));
  if (dot != std::string_view::npos) return read_at(field, fields.object(key), path.substr(dot + 1), state);
  std::visit([&](const auto& type) { type.read(fields, key, state); }, field.type);
}

// A group such as "diagnostics" is complete or absent.
void read(const Field& field, const JsonFields& fields, RunState& state) {
  const std::string group(field.path.substr(0, field.path.find('.')));
  if (field.older != nullptr && !fields.contains(group)) return field.older(state);
  read_at(field, fields, field.path, state);
}

// The digest of the object without the checksum field. Keys are sorted and numbers are printed as the shortest text
// that parses to the same value, so serializing the parsed object reproduces the hashed bytes.
std::string checksum(Json body) {
  body.erase("checksum");
  const std::string text = json_text(body);
  return sha256_hex(std::as_bytes(std::span(text)));
}

safetensors::Stamp parse_stamp(const JsonFields& fields) {
  safetensors::Stamp stamp{.bytes = fields.whole("bytes", kMaxCount), .sha256 = {}};
  const std::string hex = fields.text("sha256");
  const auto digit = [](char c) { return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1; };
  const bool all_digits = std::all_of(hex.begin(), hex.end(), [&](char c) { return digit(c) >= 0; });
  if (hex.size() != 2 * stamp.sha256.size() || !all_digits) fields.fail("sha256", "64 hexadecimal digits");
  for (size_t i = 0; i < stamp.sha256.size(); ++i) {
    stamp.sha256[i] = static_cast<uint8_t>(digit(hex[2 * i]) * 16 + digit(hex[2 * i + 1]));
  }
  return stamp;
}

// A file in the checkpoint's own directory: the name is used as a path there.
void check_file_name(std::string_view file, const std::string& name) {
  if (is_plain_file_name(name)) return;
  throw Error("[checkpoint] {}: files: expected file names without a folder, found {}", file, in_quotes(name, 40));
}

// The fields of every file that are not in the table.
void check_fixed_fields(const Json& json, const JsonFields& fields, std::string_view name) {
  if (const uint64_t version = fields.whole("version", kMaxCount); version != kVersion) {
    throw Error("[checkpoint] {}: expected version {}, found {}", name, kVersion, version);
  }
  if (const std::string found = fields.text("checksum"), expected = checksum(json); found != expected) {
    throw Error("[checkpoint] {}: checksum: expected {}, found {}: the file was changed", name, expected,
                in_quotes(found, 64));
  }
  fields.object("random").choice("generator", kGenerators);
}

}  // namespace

std::string to_json(const StateFile& file) {
  RunState state = file.state;
  Json json = {{"version", kVersion}, {"clean_steps", 0}};  // clean_steps, as loss_scale: older versions expect it
  json["random"] = {{"generator", kGenerators[0]}, {"step", state.step}};
  for (const Field& field : kFields) {
    json[pointer_of(field.path)] = std::visit([&](const auto& type) { return type.write(state); }, field.type);
  }
  json["files"] = Json::object();
  for (const auto& [name, stamp] : file.files) {
    json["files"][name] = {{"bytes", stamp.bytes}, {"sha256", to_hex(stamp.sha256)}};
  }
  json["checksum"] = checksum(json);
  return json_text(json, 2) + "\n";
}

StateFile parse_state(std::string_view text, std::string_view name) {
  const Json json = parse_json(text);
  if (json.is_discarded()) throw Error("[checkpoint] {}: expected JSON, found something else", name);
  const JsonFields fields(json, fmt::format("[checkpoint] {}", name));
  check_fixed_fields(json, fields, name);
  StateFile file;
  for (const Field& field : kFields) read(field, fields, file.state);
  if (const JsonFields random = fields.object("random"); random.whole("step", kMaxCount) != file.state.step) {
    random.fail("step", fmt::format("{}, the step", file.state.step));
  }
  const JsonFields files = fields.object("files");
  for (const auto& [key, value] : fields.at("files").items()) {
    check_file_name(name, key);
    file.files.emplace(key, parse_stamp(files.object(key)));
  }
  return file;
}

}  // namespace quern::checkpoint
