#include "checkpoint/state.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/json.h"
#include "core/text.h"

namespace quern::checkpoint {
namespace {

using Json = nlohmann::json;

constexpr uint64_t kVersion = 1;
constexpr std::string_view kGenerator = "philox4x32-10";

// Larger numbers, which no run reaches, would overflow in sums and products that use them.
constexpr uint64_t kMaxCount = INT64_MAX;
// Losses are sums of floats and not negative, except for rounding.
constexpr double kMinLoss = -1e-3, kMaxLoss = std::numeric_limits<float>::max();
constexpr std::array<std::string_view, 3> kPrecisions = {"fp32", "bf16", "fp16"};

// The digest of the object without the checksum field. Keys are sorted and numbers are printed as the shortest text
// that parses to the same value, so serializing the parsed object reproduces the hashed bytes.
std::string checksum(Json body) {
  body.erase("checksum");
  const std::string text = json_text(body);
  return sha256_hex(std::as_bytes(std::span(text)));
}

Json optional_json(const std::optional<double>& value) {
  return value && std::isfinite(*value) ? Json(*value) : Json(nullptr);
}

// The fields of one object, with their location for messages.
class Fields {
 public:
  Fields(const Json& object, std::string_view file, std::string where)
      : object_(object), file_(file), where_(std::move(where)) {
    if (!object.is_object()) fail("", "an object", object);
  }

  const Json& at(const char* key) const {
    const auto found = object_.find(key);
    if (found == object_.end()) {
      throw Error("[checkpoint] {}: {}{}: expected this field, found none", file_, where_, key);
    }
    return *found;
  }
  uint64_t whole(const char* key, uint64_t max = kMaxCount) const {
    const Json& value = at(key);
    if (!value.is_number_unsigned()) fail(key, "a whole number from 0", value);
    if (value.get<uint64_t>() > max) fail(key, fmt::format("at most {}", max), value);
    return value.get<uint64_t>();
  }
  double real(const char* key, double min, double max) const {
    const Json& value = at(key);
    if (!value.is_number()) fail(key, "a number", value);
    const auto found = value.get<double>();
    if (!(found >= min && found <= max)) fail(key, fmt::format("a number from {} to {}", min, max), value);
    return found;
  }
  double loss(const char* key) const { return real(key, kMinLoss, kMaxLoss); }
  std::optional<double> optional_loss(const char* key) const {
    return at(key).is_null() ? std::nullopt : std::optional(loss(key));
  }
  uint64_t hexadecimal(const char* key) const {
    const std::string digits = text(key);
    uint64_t value = 0;
    const auto [stop, code] = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
    if (digits.size() != 16 || stop != digits.data() + digits.size()) fail(key, "16 hexadecimal digits", digits);
    return value;
  }
  std::string text(const char* key) const {
    const Json& value = at(key);
    if (!value.is_string()) fail(key, "text", value);
    return value.get<std::string>();
  }
  // For fields that are missing from older files.
  std::string optional_text(const char* key, const char* otherwise) const {
    return object_.contains(key) ? text(key) : otherwise;
  }
  Fields object(const char* key) const { return {at(key), file_, where_ + key + "."}; }

  [[noreturn]] void fail(std::string_view key, std::string_view expected, const Json& found) const {
    throw Error("[checkpoint] {}: {}{}: expected {}, found {}", file_, where_, key, expected,
                in_quotes(json_text(found), 40));
  }

 private:
  const Json& object_;
  std::string_view file_;
  std::string where_;
};

safetensors::Stamp parse_stamp(const Fields& fields) {
  safetensors::Stamp stamp{.bytes = fields.whole("bytes"), .sha256 = {}};
  const std::string hex = fields.text("sha256");
  const auto digit = [](char c) { return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1; };
  const bool all_digits = std::all_of(hex.begin(), hex.end(), [&](char c) { return digit(c) >= 0; });
  if (hex.size() != 2 * stamp.sha256.size() || !all_digits) fields.fail("sha256", "64 hexadecimal digits", hex);
  for (size_t i = 0; i < stamp.sha256.size(); ++i) {
    stamp.sha256[i] = static_cast<uint8_t>(digit(hex[2 * i]) * 16 + digit(hex[2 * i + 1]));
  }
  return stamp;
}

// A file in the checkpoint's own directory: the name is used as a path there.
void check_file_name(const Fields& files, const std::string& name) {
  const bool is_plain = !name.empty() && name.size() <= 255 && name != "." && name != ".." &&
                        name.find_first_of(std::string_view("/\0", 2)) == std::string::npos;
  if (!is_plain) files.fail("", "file names without a folder", name);
}

std::string parse_precision(const Fields& fields) {
  const std::string name = fields.optional_text("precision", "fp32");
  if (std::find(kPrecisions.begin(), kPrecisions.end(), name) == kPrecisions.end()) {
    fields.fail("precision", fmt::format("{}", fmt::join(kPrecisions, ", ")), name);
  }
  return name;
}

// Missing from files of older runs.
std::optional<StreamPosition> parse_stream(const Json& json, const Fields& fields) {
  if (!json.contains("stream") || json["stream"].is_null()) return std::nullopt;
  const Fields where = fields.object("stream");
  return StreamPosition{.piece = where.whole("piece"), .token = where.whole("token")};
}

// Missing from files of older runs.
void parse_diagnostics(const Json& json, const Fields& fields, State& state) {
  if (!json.contains("diagnostics")) return;
  const Fields diagnostics = fields.object("diagnostics"), losses = diagnostics.object("losses");
  state.incidents = diagnostics.whole("incidents", kMaxSteps);
  state.left_out = diagnostics.whole("left_out", kMaxSteps);
  state.losses = {.count = losses.whole("count", state.step),  // one per step
                  .mean = losses.loss("mean"),
                  .variance = losses.real("variance", 0, kMaxLoss * kMaxLoss)};
}

}  // namespace

std::string to_json(const StateFile& file) {
  const State& state = file.state;
  Json files = Json::object();
  for (const auto& [name, stamp] : file.files) {
    files[name] = {{"bytes", stamp.bytes}, {"sha256", to_hex(stamp.sha256)}};
  }
  Json json = {
      {"version", kVersion},
      {"step", state.step},
      {"tokens", state.tokens},
      {"data_position", state.data_position},
      {"data", {{"tokens", state.data_tokens}, {"hash", fmt::format("{:016x}", state.data_hash)}}},
      {"stream", state.stream ? Json{{"piece", state.stream->piece}, {"token", state.stream->token}} : Json()},
      {"random", {{"generator", kGenerator}, {"seed", state.seed}, {"step", state.step}}},
      {"precision", state.precision},
      {"loss_scale", state.loss_scale},
      {"clean_steps", 0},  // clean_steps and loss_scale: older versions expect them
      {"updates", state.updates},
      {"validation_loss", optional_json(state.validation_loss)},
      {"best_validation_loss", optional_json(state.best_validation_loss)},
      {"best_step", state.best_step},
      {"diagnostics",
       {{"incidents", state.incidents},
        {"left_out", state.left_out},
        {"losses", {{"count", state.losses.count}, {"mean", state.losses.mean}, {"variance", state.losses.variance}}}}},
      {"files", std::move(files)}};
  json["checksum"] = checksum(json);
  return json_text(json, 2) + "\n";
}

StateFile parse_state(std::string_view text, std::string_view name) {
  const Json json = parse_json(text);
  if (json.is_discarded()) throw Error("[checkpoint] {}: expected JSON, found something else", name);
  const Fields fields(json, name, "");
  if (const uint64_t version = fields.whole("version"); version != kVersion) {
    throw Error("[checkpoint] {}: expected version {}, found {}", name, kVersion, version);
  }
  if (const std::string found = fields.text("checksum"), expected = checksum(json); found != expected) {
    throw Error("[checkpoint] {}: checksum: expected {}, found {}: the file was changed", name, expected,
                in_quotes(found, 64));
  }
  const Fields random = fields.object("random");
  if (const std::string generator = random.text("generator"); generator != kGenerator) {
    random.fail("generator", kGenerator, generator);
  }
  const Fields data = fields.object("data");
  StateFile file;
  file.state = {
      .step = fields.whole("step", kMaxSteps),
      .tokens = fields.whole("tokens"),
      .seed = random.whole("seed", UINT64_MAX),
      .data_position = fields.whole("data_position"),
      .precision = parse_precision(fields),
      .updates = json.contains("updates") ? fields.whole("updates") : fields.whole("step"),
      .loss_scale = fields.real("loss_scale", std::numeric_limits<float>::min(), std::numeric_limits<float>::max()),
      .validation_loss = fields.optional_loss("validation_loss"),
      .best_validation_loss = fields.optional_loss("best_validation_loss"),
      .best_step = fields.whole("best_step"),
      .data_tokens = data.whole("tokens"),
      .data_hash = data.hexadecimal("hash"),
      .stream = parse_stream(json, fields)};
  if (file.state.updates > file.state.step) fields.fail("updates", "at most the step", fields.at("updates"));
  if (file.state.best_step > file.state.step) fields.fail("best_step", "at most the step", fields.at("best_step"));
  if (random.whole("step") != file.state.step) {
    random.fail("step", fmt::format("{}, the step", file.state.step), random.at("step"));
  }
  parse_diagnostics(json, fields, file.state);
  const Fields files = fields.object("files");
  for (const auto& [key, value] : fields.at("files").items()) {
    check_file_name(files, key);
    file.files.emplace(key, parse_stamp(files.object(key.c_str())));
  }
  return file;
}

}  // namespace quern::checkpoint
