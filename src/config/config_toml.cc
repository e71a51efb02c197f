// Conversion between config and TOML, driven by the table of fields.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <optional>
#include <utility>

#include "config/checked_toml.h"
#include "config/config_fields.h"
#include "config/history.h"
#include "config/synonyms.h"
#include "core/error.h"
#include "core/files.h"
#include "core/text.h"
#include "core/whole_number.h"

namespace quern::train {
namespace {

// A key a.b.c creates three nested tables, which are destroyed recursively.
constexpr ptrdiff_t kMaxDotsInLine = 1000;

// The source of a value: a file, with lines and columns, or a flag, without.
struct Source {
  std::string_view name;
  bool has_lines;

  std::string at(const toml::source_position& position) const {
    if (!has_lines) return std::string(name);
    return fmt::format("{}:{}:{}", name, position.line, position.column);
  }
};

// Always has a decimal point or exponent, so that the message for 1.0 in place of an integer is not "found 1".
std::string real_text(double value) {
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".en") == std::string::npos) text += ".0";
  return text;
}

std::string found_text(const toml::node& node) {
  if (const auto* value = node.as_integer()) return std::to_string(value->get());
  if (const auto* value = node.as_floating_point()) return real_text(value->get());
  if (const auto* value = node.as_boolean()) return value->get() ? "true" : "false";
  if (const auto* value = node.as_string()) return in_quotes(value->get());
  if (node.is_array()) return "a list";
  return node.is_table() ? "a table" : "a date or time";
}

constexpr uint64_t kMaxInteger = INT64_MAX;  // of TOML

// The value of these digits if it exceeds the range of TOML integers.
std::optional<uint64_t> large_number(std::string_view digits) {
  uint64_t value = 0;
  const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (code != std::errc() || end != digits.data() + digits.size() || value <= kMaxInteger) return std::nullopt;
  return value;
}

// Whether a whole number may be written as a float, such as 1e3: in text it is what people type, but a float of another
// language may already have been rounded.
enum class WholeFloats : bool { kRefused, kAccepted };

std::optional<uint64_t> whole_value(const toml::node& node, WholeFloats floats) {
  constexpr double kExact = 0x1p53;  // from here on, a float may stand for another number
  if (const auto* text = node.as_string()) return large_number(text->get());
  if (const auto* real = node.as_floating_point()) {
    const double number = real->get();
    const bool whole = number >= 0 && number < kExact && number == std::floor(number);
    return whole && floats == WholeFloats::kAccepted ? std::optional(static_cast<uint64_t>(number)) : std::nullopt;
  }
  const auto* value = node.as_integer();
  if (value == nullptr || value->get() < 0) return std::nullopt;
  return static_cast<uint64_t>(value->get());
}

// Sets one field from a node; returns false if the value is not allowed.
class Setter {
 public:
  Setter(RunConfig& config, const toml::node& node, WholeFloats floats)
      : config_(config), node_(node), floats_(floats) {}

  bool operator()(const WholeField& field) const {
    const std::optional<uint64_t> whole = whole_value(node_, floats_);
    if (!whole || *whole < field.min || *whole > field.max) return false;
    field.of(config_) = *whole;
    return true;
  }
  bool operator()(const RealField& field) const {
    if (!node_.is_number()) return false;
    const std::optional<double> real = node_.value<double>();  // nullopt for an integer that is not exactly a double
    if (!real || !(*real >= field.min && *real <= field.max)) return false;  // NaN is not in any range
    field.of(config_) = *real == 0.0 ? 0.0 : *real;  // no -0.0, so that equal configs print the same
    return true;
  }
  bool operator()(const FlagField& field) const {
    const auto* value = node_.as_boolean();
    if (value != nullptr) field.of(config_) = value->get();
    return value != nullptr;
  }
  bool operator()(const ChoiceField& field) const {
    const auto* value = node_.as_string();
    if (value == nullptr) return false;
    const auto found = std::find(field.names.begin(), field.names.end(), value->get());
    if (found == field.names.end()) return false;
    field.set(config_, static_cast<size_t>(found - field.names.begin()));
    return true;
  }
  bool operator()(const TextField& field) const {
    const auto* value = node_.as_string();
    return value != nullptr && field.set(config_, value->get());
  }
  bool operator()(const ListField& field) const {
    const auto* array = node_.as_array();
    if (array == nullptr) return false;
    std::vector<std::string> items;
    for (const toml::node& item : *array) {
      const auto* value = item.as_string();
      if (value == nullptr || value->get().find('\0') != std::string::npos) return false;
      items.push_back(value->get());
    }
    field.of(config_) = std::move(items);
    return true;
  }

 private:
  RunConfig& config_;
  const toml::node& node_;
  WholeFloats floats_;
};

std::string expected_text(const Field& field) {
  const char* kind = std::holds_alternative<WholeField>(field.kind)  ? "a whole number from "
                     : std::holds_alternative<RealField>(field.kind) ? "a number from "
                     : std::holds_alternative<ListField>(field.kind) ? "a list of texts, as [\"a\", \"b\"]"
                                                                     : "";
  return kind + allowed_values(field);
}

// What to write instead of a value that is not allowed: "; did you mean fp32?", "; write 1000", or nothing.
std::string advice_for(const Field& field, const toml::node& node) {
  if (std::holds_alternative<WholeField>(field.kind)) {
    const auto whole = node.is_floating_point() ? whole_value(node, WholeFloats::kAccepted) : std::nullopt;
    return whole ? fmt::format("; write {}", *whole) : std::string();
  }
  const std::string found = node.is_string() ? node.as_string()->get() : found_text(node);
  return did_you_mean(found, words_of(field));
}

void mark_given(RunConfig::Given& given, const Field& field, bool in_file) {
  given.min_rate |= field.table == "optimizer" && field.name == "min_rate";
  given.warmup |= field.table == "optimizer" && field.name == "warmup";
  given.steps |= !in_file && field.table == "train" && field.name == "steps";
  given.epochs |= !in_file && field.table == "data" && field.name == "epochs";
}

void set_field(RunConfig& config, const Field& field, const toml::node& node, const Source& source,
               WholeFloats floats = WholeFloats::kAccepted) {
  if (std::visit(Setter(config, node, floats), field.kind)) {
    mark_given(config.given, field, source.has_lines);
    return;
  }
  throw Error("[config] {}: {}: expected {}, found {}{}", source.at(node.source().begin), field.path(),
              expected_text(field), found_text(node), advice_for(field, node));
}

const Field* find_field(std::string_view table, std::string_view name) {
  for (const Field& field : fields()) {
    if (field.table == table && field.name == name) return &field;
  }
  return nullptr;
}

std::vector<std::string_view> table_names() {
  std::vector<std::string_view> names;
  for (const Field& field : fields()) {
    if (names.empty() || names.back() != field.table) names.push_back(field.table);
  }
  return names;
}

[[noreturn]] void unknown_name(std::string_view table, std::string_view name, const std::string& where) {
  const std::string found = table.empty() ? std::string(name) : fmt::format("{}.{}", table, name);
  const SettingAdvice advice = advise_setting(found);
  throw Error("[config] {}: expected the name of a setting, found {}{}", where, in_quotes(found),
              advice.empty() ? "; `quern train --print-config` lists them" : advice.text());
}

// The field of "table.name".
const Field& field_at(std::string_view path, const std::string& where) {
  const size_t dot = std::min(path.find('.'), path.size());
  const std::string_view table = path.substr(0, dot);
  const std::string_view name = path.substr(std::min(dot + 1, path.size()));
  const Field* field = find_field(table, name);
  if (field == nullptr && name.empty()) unknown_name("", table, where);
  if (field == nullptr) unknown_name(table, name, where);
  return *field;
}

void apply_table(RunConfig& config, std::string_view name, const toml::table& table, const Source& source) {
  for (const auto& [key, node] : table) {
    const Field* field = find_field(name, key.str());
    if (field == nullptr) unknown_name(name, key.str(), source.at(key.source().begin));
    set_field(config, *field, node, source);
  }
}

constexpr std::string_view kHistory = "history", kFromStep = "from_step";

// The settings of a table of an entry, as value_text() prints them.
void read_settings(RunConfig::Change& change, std::string_view name, const toml::table& table, const Source& source) {
  for (const auto& [key, node] : table) {
    const Field* field = find_field(name, key.str());
    if (field == nullptr) unknown_name(name, key.str(), source.at(key.source().begin));
    RunConfig scratch;
    set_field(scratch, *field, node, source);
    change.settings.push_back({field->path(), value_text(*field, scratch)});
  }
}

// An entry of the history: from_step, and settings as dotted names.
RunConfig::Change read_change(const toml::table& entry, const Source& source) {
  constexpr uint64_t kMaxStep = UINT32_MAX;
  const toml::node* from = entry.get(kFromStep);
  const std::optional<uint64_t> step = from != nullptr ? whole_value(*from, WholeFloats::kAccepted) : std::nullopt;
  if (!step || *step < 1 || *step > kMaxStep) {
    throw Error("[config] {}: expected {} with a whole number from 1 to {}, found {}", source.at(entry.source().begin),
                kFromStep, kMaxStep, from != nullptr ? found_text(*from) : "none");
  }
  RunConfig::Change change{.from_step = *step, .settings = {}};
  for (const auto& [key, node] : entry) {
    if (key.str() == kFromStep) continue;
    if (!node.is_table()) unknown_name("", key.str(), source.at(key.source().begin));
    read_settings(change, key.str(), *node.as_table(), source);
  }
  sort_as_printed(change.settings);
  return change;
}

std::vector<RunConfig::Change> read_history(const toml::node& node, const Source& source) {
  const toml::array* entries = node.as_array();
  if (entries == nullptr || !entries->is_homogeneous(toml::node_type::table)) {
    throw Error("[config] {}: {}: expected tables [[{}]], found {}", source.at(node.source().begin), kHistory, kHistory,
                found_text(node));
  }
  std::vector<RunConfig::Change> history;
  for (const toml::node& entry : *entries) history.push_back(read_change(*entry.as_table(), source));
  return history;
}

void check_lines(std::string_view text, const Source& source) {
  size_t line = 1;
  for (size_t begin = 0; begin < text.size(); ++line) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view part = text.substr(begin, end - begin);
    if (std::count(part.begin(), part.end(), '.') > kMaxDotsInLine) {
      throw Error("[config] {}:{}: expected at most {} dots in a line, found more", source.name, line, kMaxDotsInLine);
    }
    begin = end + 1;
  }
}

toml::table parse_toml(std::string_view text, const Source& source) {
  check_lines(text, source);
  try {
    return toml::parse(text);
  } catch (const toml::parse_error& error) {
    const bool large = error.description().find("not representable in 64 bits") != std::string_view::npos;
    throw Error("[config] {}: {}{}", source.at(error.source().begin), in_quotes(error.description(), 300),
                large ? "; put a seed of 2^63 or above in quotation marks" : "");
  } catch (const TomlAssumptionFailed&) {
    throw Error("[config] {}: expected TOML, found something else", source.name);
  }
}

std::string escape(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      result += '\\';
      result += c;
    } else if (byte < 0x20 || byte == 0x7F) {
      result += fmt::format("\\u{:04X}", byte);
    } else {
      result += c;
    }
  }
  return result + '"';
}

// Prints a value as TOML; real numbers always have a decimal point or exponent, so that they parse as such.
struct Printer {
  RunConfig& config;

  std::string operator()(const WholeField& field) const {
    const uint64_t value = field.of(config);
    return value > kMaxInteger ? escape(std::to_string(value)) : std::to_string(value);
  }
  std::string operator()(const RealField& field) const { return real_text(field.of(config)); }
  std::string operator()(const FlagField& field) const { return field.of(config) ? "true" : "false"; }
  std::string operator()(const ChoiceField& field) const { return escape(field.names[field.get(config)]); }
  std::string operator()(const TextField& field) const { return escape(field.get(config)); }
  std::string operator()(const ListField& field) const {
    std::vector<std::string> items;
    for (const std::string& item : field.of(config)) items.push_back(escape(item));
    return fmt::format("[{}]", fmt::join(items, ",\n  "));
  }
};

// Converts a typed value to a node.
toml::value<bool> as_node(bool value) { return toml::value<bool>(value); }
toml::value<int64_t> as_node(int64_t value) { return toml::value<int64_t>(value); }
toml::value<double> as_node(double value) { return toml::value<double>(value); }
toml::value<std::string> as_node(const std::string& value) { return toml::value<std::string>(value); }
toml::array as_node(const std::vector<std::string>& items) {
  toml::array array;
  for (const std::string& item : items) array.push_back(item);
  return array;
}

// Parses a number as all other flags do (core/whole_number.h): TOML would read 0x10 as 16, and reject 010 and .001.
// nullopt if it is none.
std::optional<std::string> plain_number(const Field& field, std::string_view value) {
  if (std::holds_alternative<WholeField>(field.kind)) {
    const std::optional<uint64_t> whole = parse_whole_number(value);
    return whole ? std::optional(std::to_string(*whole)) : std::nullopt;
  }
  if (value.find_first_of(".eE") == std::string_view::npos) return std::nullopt;  // TOML checks integers for exactness
  double real = 0;
  const auto [end, code] = std::from_chars(value.data(), value.data() + value.size(), real);
  const bool good = code == std::errc() && end == value.data() + value.size() && std::isfinite(real);
  return good && std::holds_alternative<RealField>(field.kind) ? std::optional(real_text(real)) : std::nullopt;
}

// Whether this is a string in TOML. "Yes," he said, is not, though it begins as one.
bool is_toml_string(std::string_view value) {
  try {
    const toml::table table = parse_toml(fmt::format("value = {}", value), {"", false});
    return table.size() == 1 && table.contains("value") && table.at("value").is_string();
  } catch (const Error&) {
    return false;
  }
}

// The value of --set as TOML: adds the quotes and brackets that text and lists of one item may omit.
std::string as_toml_value(const Field& field, std::string_view value) {
  const bool text = std::holds_alternative<ChoiceField>(field.kind) || std::holds_alternative<TextField>(field.kind);
  if (text && !is_toml_string(value)) return escape(value);
  if (std::holds_alternative<ListField>(field.kind) && !value.starts_with('['))
    return fmt::format("[{}]", escape(value));
  if (std::holds_alternative<WholeField>(field.kind) && large_number(value)) return escape(value);
  return std::string(value);
}

// A value that is not TOML at all, such as a word in place of a number, is reported as a wrong type, not as a syntax
// error: users who write --steps x do not know that TOML is involved.
toml::table parse_value(const Field& field, std::string_view value, std::string_view where, bool is_option) {
  const bool whole = std::holds_alternative<WholeField>(field.kind);
  try {
    const std::optional<std::string> number = plain_number(field, value);
    // Negative numbers are left to the check of the range, whose message does not quote them.
    if (whole && is_option && !number && !value.starts_with('-')) throw Error("not a whole number");
    return parse_toml("value = " + as_toml_value(field, number ? *number : value), {where, false});
  } catch (const Error&) {
    throw Error("[config] {}: {}: expected {}, found {}{}", where, field.path(), expected_text(field), in_quotes(value),
                whole ? whole_number_hint(value) : did_you_mean(value, words_of(field)));
  }
}

}  // namespace

void apply_toml(RunConfig& config, std::string_view text, std::string_view file) {
  const Source source{file, true};
  const toml::table root = parse_toml(text, source);
  RunConfig changed = config;
  for (const auto& [key, node] : root) {
    if (key.str() == kHistory) {
      changed.history = read_history(node, source);
      continue;
    }
    const std::vector<std::string_view> names = table_names();
    const bool known = std::find(names.begin(), names.end(), key.str()) != names.end();
    const std::string where = source.at(key.source().begin);
    if (!known && !node.is_table()) unknown_name("", key.str(), where);
    if (!known || !node.is_table()) {
      const std::string_view near = advise_value(key.str(), names);
      throw Error("[config] {}: expected a table of {}, found {}{}", where, fmt::join(names, ", "),
                  in_quotes(key.str()), near.empty() ? "" : fmt::format("; did you mean [{}]?", near));
    }
    apply_table(changed, key.str(), *node.as_table(), source);
  }
  config = std::move(changed);
}

void apply_toml_file(RunConfig& config, const std::filesystem::path& path) {
  apply_toml(config, read_file(path, kMaxConfigBytes), path.native());
}

bool sets_field(const std::filesystem::path& path, std::string_view field) {
  const std::string text = read_file(path, kMaxConfigBytes);
  return static_cast<bool>(parse_toml(text, {path.native(), true}).at_path(field));
}

void apply_setting(RunConfig& config, std::string_view setting, std::string_view where) {
  const std::string shown = where.empty() ? "--set " + in_quotes(setting) : std::string(where);
  const size_t equals = setting.find('=');
  if (equals == std::string_view::npos) throw Error("[config] {}: expected table.name=value, found no =", shown);
  const Field& field = field_at(setting.substr(0, equals), shown);
  const std::string_view value = setting.substr(equals + 1);
  const toml::table parsed = parse_value(field, value, shown, !where.empty());
  if (parsed.size() != 1) throw Error("[config] {}: expected one value, found more", shown);
  set_field(config, field, *parsed.get("value"), {shown, false});
}

void apply_value(RunConfig& config, std::string_view path, const SettingValue& value, std::string_view where) {
  const Field& field = field_at(path, std::string(where));
  const auto set = [&](const auto& held) {
    set_field(config, field, as_node(held), {where, false}, WholeFloats::kRefused);
  };
  const auto* text = std::get_if<std::string>(&value);
  if (text != nullptr && std::holds_alternative<ListField>(field.kind)) return set(std::vector{*text});
  std::visit(set, value);
}

std::string value_text(const Field& field, const RunConfig& config) {
  RunConfig copy = config;  // the accessors take a mutable config
  return std::visit(Printer{copy}, field.kind);
}

namespace {

// Whether a table matters for this kind of run, or has settings of its own all the same.
bool is_printed(std::string_view table, const RunConfig& config) {
  if (table == "selfplay") return config.is_selfplay() || config.selfplay != RunConfig::Selfplay{};
  if (!config.is_selfplay()) return true;
  if (table == "data") return config.data != RunConfig::Data{};
  if (table == "lora") return config.lora != RunConfig::Lora{};
  if (table == "dist") return config.dist != RunConfig::Dist{};
  if (table == "init") return config.init != RunConfig::Init{};
  return true;
}

}  // namespace

std::string to_toml(const RunConfig& config) {
  std::string text = "# All settings of a run. Omitted settings have their defaults.\n";
  std::string_view table;
  for (const Field& field : fields()) {
    if (!is_printed(field.table, config)) continue;
    if (field.table != table) text += fmt::format("\n[{}]\n", field.table);
    table = field.table;
    const std::string allowed = allowed_values(field);
    text += fmt::format("# {}{}\n", field.doc, allowed.empty() ? "" : " (" + allowed + ")");
    text += fmt::format("{} = {}\n", field.name, value_text(field, config));
  }
  if (config.history.empty()) return text;
  text +=
      "\n# What was in force from which step, for settings that changed. The tables above have the newest values.\n";
  for (const RunConfig::Change& change : config.history) {
    text += fmt::format("\n[[{}]]\n{} = {}\n", kHistory, kFromStep, change.from_step);
    for (const auto& [path, value] : change.settings) text += fmt::format("{} = {}\n", path, value);
  }
  return text;
}

}  // namespace quern::train
