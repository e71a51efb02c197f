#include "dashboard/run_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>

#include "core/text.h"

namespace quern::dashboard {
namespace {

constexpr size_t kMaxShapes = 24;
constexpr size_t kMaxShapeBytes = size_t{1} << 20;
constexpr size_t kMaxNameBytes = 200;
constexpr size_t kMaxTables = 32;
// A damaged file could have more of them than anybody reads.
constexpr uint64_t kMaxDamageEvents = 20;

// Objects of numbers by row and measure.
constexpr std::string_view kHealth = "health";

// Lines with these are events: they are read the slow way, even without any text in them.
constexpr std::string_view kEvents[] = {"start",   "end",      "incident", "sample",
                                        "warning", "settings", "limit",    "checkpoint"};

bool is_event(std::string_view name) {
  return std::find(std::begin(kEvents), std::end(kEvents), name) != std::end(kEvents);
}

bool is_plain(std::string_view name) {
  return !name.empty() && name.size() <= kMaxNameBytes && name.find('\\') == std::string_view::npos;
}

float number_of(const nlohmann::ordered_json& value) {
  if (value.is_boolean()) return value.get<bool>() ? 1 : 0;
  return value.is_number() ? value.get<float>() : std::numeric_limits<float>::quiet_NaN();
}

bool is_value(const nlohmann::ordered_json& value) {
  return value.is_number() || value.is_null() || value.is_boolean();
}

std::string text_of(const nlohmann::ordered_json& object, const char* name, std::string fallback = {}) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : fallback;
}

std::string limited(std::string text) {
  if (text.size() <= RunData::kMaxTextBytes) return text;
  size_t size = RunData::kMaxTextBytes;
  while (size > 0 && (static_cast<unsigned char>(text[size]) & 0xc0) == 0x80) --size;  // not within a character
  text.resize(size);
  return text + "…";
}

std::string incident_text(const nlohmann::ordered_json& incident) {
  const std::string action = text_of(incident, "action");
  std::string text = text_of(incident, "text", "an incident");
  if (action == "skip") text += "; its update was skipped";
  if (action == "rollback") text += "; rolled back";
  if (action == "stop") text += "; the run stopped";
  const std::string folder = text_of(incident, "folder");
  return folder.empty() ? text : fmt::format("{}; saved in incidents/{}", text, folder);
}

std::string start_text(const nlohmann::ordered_json& facts, uint64_t step) {
  std::string text = step > 0 ? fmt::format("resumed after step {}", step) : "started";
  if (const std::string time = text_of(facts, "time"); !time.empty()) text += " at " + time;
  if (const std::string host = text_of(facts, "host"); !host.empty()) text += " on " + host;
  return text;
}

}  // namespace

void RunData::add(std::string_view line) {
  ++lines_;
  if (add_known(line)) return;
  const Json entry = parse_ordered_json(line);
  if (!entry.is_object()) return damage("expected a JSON object, found " + in_quotes(line, 40));
  const auto step = entry.find("step");
  if (step == entry.end() || !step->is_number_unsigned())
    return damage("expected a step, found " + in_quotes(line, 40));
  if (std::string problem = add_payload(line, step->get<uint64_t>(), entry); !problem.empty()) damage(problem);
}

void RunData::add_too_long(uint64_t bytes) {
  ++lines_;
  damage(fmt::format("a line of more than {} bytes", bytes));
}

void RunData::damage(std::string text) {
  ++damaged_;
  if (damaged_ <= kMaxDamageEvents) add_event("damage", fmt::format("metrics.jsonl:{}: {}", lines_, text));
}

void RunData::add_event(std::string kind, std::string text) {
  if (events_.size() == kMaxEvents) events_.pop_front();
  events_.push_back({step_, seconds_, std::move(kind), limited(std::move(text))});
}

bool RunData::add_known(std::string_view line) {
  for (size_t i = 0; i < known_.size(); ++i) {
    KnownLine& known = known_[i];
    if (!known.shape.read(line, std::span(values_).first(known.shape.size()))) continue;
    if (!values_[0].whole) return false;
    if (i > 0) std::swap(known_[i], known_[i - 1]);
    take(known_[i > 0 ? i - 1 : 0]);
    return true;
  }
  return false;
}

// The step is the first value of every known line.
void RunData::take(const KnownLine& known) {
  const uint64_t step = values_[0].digits;
  if (known.heat_map != nullptr) {
    std::vector<float>* column = heat_column(*known.heat_map, step);
    if (column == nullptr) return;
    for (size_t i = 1; i < known.targets.size(); ++i) {
      const Target& target = known.targets[i];
      const size_t at = target.column * HeatMap::kMaxMeasures + target.measure;
      if (target.kind != Target::Kind::kHeat) continue;
      if (column->size() <= at) column->resize(at + 1, std::numeric_limits<float>::quiet_NaN());
      (*column)[at] = static_cast<float>(values_[i].number);
    }
    return;
  }
  for (size_t i = 1; i < known.targets.size(); ++i) {
    if (known.targets[i].kind == Target::Kind::kElapsed) seconds_ = static_cast<float>(values_[i].number);
  }
  Table& table = tables_[known.table];
  table.begin_row(step, seconds_);
  for (size_t i = 1; i < known.targets.size(); ++i) {
    if (known.targets[i].kind == Target::Kind::kNone) continue;
    table.set(known.targets[i].column, static_cast<float>(values_[i].number));
  }
  if (known.table == 0) step_ = step;
}

// Remembers the shape of a line that was read the slow way, if all of it can be read the fast way.
void RunData::learn(std::string_view line) {
  if (line.size() > kMaxShapeBytes) return;
  std::vector<std::vector<std::string_view>> paths;
  std::optional<LineShape> shape = LineShape::of(line, paths);
  if (!shape || paths.size() < 2 || paths[0].size() != 1 || paths[0][0] != "step") return;
  KnownLine known{.shape = std::move(*shape), .targets = {{.kind = Target::Kind::kStep}}};
  const bool health = paths[1][0] == kHealth;
  if (health) {
    known.heat_map = &heat_map_of(kHealth);
  } else {
    known.table = table_of(paths[1][0]);
  }
  for (size_t i = 1; i < paths.size(); ++i) {
    const auto& path = paths[i];
    if ((path.size() == 1 && path[0] == "step") || is_event(path[0])) return;
    if ((path[0] == kHealth) != health || path.size() > (health ? 3 : 2)) return;
    if (!std::all_of(path.begin(), path.end(), is_plain)) return;
    Target target;
    if (health) {
      if (path.size() != 3) return;
      const auto row = index_of(known.heat_map->rows, path[1], HeatMap::kMaxRows);
      const auto measure = index_of(known.heat_map->measures, path[2], HeatMap::kMaxMeasures);
      if (row && measure) target = {Target::Kind::kHeat, *row, *measure};
    } else {
      const std::string name = path.size() == 1 ? std::string(path[0]) : fmt::format("{}.{}", path[0], path[1]);
      const auto column = column_of(known.table, name);
      if (column) target = {name == "elapsed" ? Target::Kind::kElapsed : Target::Kind::kNumber, *column, 0};
    }
    known.targets.push_back(target);
  }
  values_.resize(std::max(values_.size(), paths.size()));
  if (known_.size() == kMaxShapes) known_.pop_back();  // hardly ever used
  known_.push_back(std::move(known));
}

// Returns what is wrong with it.
std::string RunData::add_payload(std::string_view line, uint64_t step, const Json& entry) {
  for (const char* name : {"loss", "validation_loss", "rate", "gradient_norm", "tokens_per_s", "elapsed"}) {
    const auto found = entry.find(name);
    if (found != entry.end() && !is_value(*found)) {
      return fmt::format("{}: expected a number, found {}", name, in_quotes(json_text(*found), 40));
    }
  }
  for (const char* name : {"memory", "health", "incident", "selfplay", "rating", "start", "end", "sample"}) {
    const auto found = entry.find(name);
    if (found != entry.end() && !found->is_object()) {
      return fmt::format("{}: expected an object, found {}", name, in_quotes(json_text(*found), 40));
    }
  }
  add_numbers(step, entry);
  const auto event = [&](const char* kind, std::string text) {
    add_event(kind, std::move(text));
    events_.back().step = step;
  };
  if (const auto found = entry.find("warning"); found != entry.end()) {
    if (!found->is_string()) return "warning: expected text";
    event("warning", found->get<std::string>());
  }
  if (const auto found = entry.find("incident"); found != entry.end()) {
    event("incident", incident_text(*found));
    const auto failed = found->find("step");
    if (failed != found->end() && failed->is_number_unsigned()) events_.back().step = failed->get<uint64_t>();
  }
  if (const auto found = entry.find("settings"); found != entry.end() && found->is_string()) {
    event("settings", found->get<std::string>());
  }
  if (const auto found = entry.find("start"); found != entry.end()) {
    start_ = Start{step, *found};
    end_.reset();
    event(step > 0 ? "resume" : "start", start_text(*found, step));
  }
  if (const auto found = entry.find("checkpoint"); found != entry.end()) {
    event("checkpoint", found->is_string() ? "saved " + found->get<std::string>() : "saved");
  }
  if (const auto found = entry.find("end"); found != entry.end()) {
    const bool finished = found->value("finished", Json(false)) == true;
    end_ = End{finished, *found};
    const std::string time = text_of(*found, "time");
    event("end", fmt::format("{}{}{}", finished ? "finished" : "stopped and saved", time.empty() ? "" : " at ", time));
  }
  if (const auto found = entry.find("limit"); found != entry.end() && found->is_string()) {
    limit_ = limited(found->get<std::string>());
  }
  if (const auto found = entry.find("sample"); found != entry.end()) add_text(step, "sample", *found);
  learn(line);
  return {};
}

void RunData::add_text(uint64_t step, std::string_view field, const Json& sample) {
  std::vector<Text>& texts = texts_[std::string(field)];
  while (!texts.empty() && texts.back().step >= step) texts.pop_back();
  if (texts.size() == kMaxTexts) {  // every second one goes, so that the first ones of a long run remain
    for (size_t i = 0; i < kMaxTexts / 2; ++i) texts[i] = std::move(texts[2 * i]);
    texts.resize(kMaxTexts / 2);
  }
  texts.push_back({step, limited(text_of(sample, "prompt")), limited(text_of(sample, "text"))});
}

void RunData::add_numbers(uint64_t step, const Json& entry) {
  if (const auto found = entry.find("elapsed"); found != entry.end() && found->is_number()) {
    seconds_ = found->get<float>();
  }
  std::optional<size_t> table;
  const auto add = [&](const std::string& first, const std::string& name, const Json& value) {
    if (!is_value(value) || !is_plain(name)) return;
    if (!table) {
      table = table_of(first);
      tables_[*table].begin_row(step, seconds_);
      if (*table == 0) step_ = step;
    }
    if (const auto column = column_of(*table, name)) tables_[*table].set(*column, number_of(value));
  };
  for (const auto& [name, value] : entry.items()) {
    if (name == "step" || is_event(name)) continue;
    if (name == kHealth) {
      HeatMap& map = heat_map_of(kHealth);
      std::vector<float>* column = heat_column(map, step);
      if (column == nullptr) continue;
      for (const auto& [tensor, measures] : value.items()) {
        const auto row = is_plain(tensor) ? index_of(map.rows, tensor, HeatMap::kMaxRows) : std::nullopt;
        if (!row || !measures.is_object()) continue;
        for (const auto& [measure, number] : measures.items()) {
          const auto m = is_plain(measure) ? index_of(map.measures, measure, HeatMap::kMaxMeasures) : std::nullopt;
          if (!m || !is_value(number)) continue;
          const size_t at = *row * HeatMap::kMaxMeasures + *m;
          if (column->size() <= at) column->resize(at + 1, std::numeric_limits<float>::quiet_NaN());
          (*column)[at] = number_of(number);
        }
      }
    } else if (value.is_object()) {
      for (const auto& [inner, number] : value.items()) add(name, fmt::format("{}.{}", name, inner), number);
    } else {
      add(name, name, value);
    }
  }
}

// The first table is that of steps: its name is reserved, so that it is first whatever comes first.
size_t RunData::table_of(std::string_view name) {
  if (table_names_.empty()) {
    table_names_.emplace_back("loss");
    tables_.emplace_back();
  }
  const auto found = std::find(table_names_.begin(), table_names_.end(), name);
  if (found != table_names_.end()) return static_cast<size_t>(found - table_names_.begin());
  if (tables_.size() == kMaxTables) return kMaxTables - 1;
  table_names_.emplace_back(name);
  tables_.emplace_back();
  return tables_.size() - 1;
}

std::optional<size_t> RunData::column_of(size_t table, const std::string& name) {
  const auto found = fields_.find(name);
  if (found != fields_.end()) {
    return found->second.table == table ? std::optional(found->second.column) : std::nullopt;
  }
  if (fields_.size() == kMaxFields) return std::nullopt;
  const size_t column = tables_[table].column(name);
  fields_.emplace(name, Field{table, column});
  return column;
}

HeatMap& RunData::heat_map_of(std::string_view name) { return heat_maps_[std::string(name)]; }

std::optional<size_t> RunData::index_of(std::vector<std::string>& names, std::string_view name, size_t limit) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found != names.end()) return static_cast<size_t>(found - names.begin());
  if (names.size() == limit) return std::nullopt;
  names.emplace_back(name);
  return names.size() - 1;
}

// The column of a step to fill in; null if it is one of those that are left out.
std::vector<float>* RunData::heat_column(HeatMap& map, uint64_t step) {
  while (!map.steps.empty() && map.steps.back() >= step) {
    map.steps.pop_back();
    map.columns.pop_back();
  }
  if (map.seen++ % map.every != 0) return nullptr;
  const size_t values = map.rows.size() * HeatMap::kMaxMeasures;
  if (map.columns.size() > 1 && (map.columns.size() + 1) * values > HeatMap::kMaxValues) {
    const size_t half = (map.columns.size() + 1) / 2;
    for (size_t i = 0; i < half; ++i) {
      map.steps[i] = map.steps[2 * i];
      map.columns[i] = std::move(map.columns[2 * i]);
    }
    map.steps.resize(half);
    map.columns.resize(half);
    map.every *= 2;
  }
  map.steps.push_back(step);
  map.columns.emplace_back(values, std::numeric_limits<float>::quiet_NaN());
  return &map.columns.back();
}

std::optional<RunData::Field> RunData::field(std::string_view name) const {
  const auto found = fields_.find(name);
  return found == fields_.end() ? std::nullopt : std::optional(found->second);
}

std::vector<std::string> RunData::fields_below(std::string_view prefix) const {
  const std::string start = std::string(prefix) + ".";
  std::vector<std::string> names;
  for (auto found = fields_.lower_bound(start); found != fields_.end() && found->first.starts_with(start); ++found) {
    names.push_back(found->first);
  }
  return names;
}

}  // namespace quern::dashboard
