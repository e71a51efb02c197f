// What the metrics.jsonl of a run says, in bounded memory: curves, heat maps, texts and events.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/json.h"
#include "dashboard/line_shape.h"
#include "dashboard/table.h"

namespace quern::dashboard {

struct Event {
  uint64_t step = 0;
  float seconds = 0;  // of training so far
  std::string kind;   // start, resume, checkpoint, warning, incident, settings, end or damage
  std::string text;
};

struct Text {
  uint64_t step = 0;
  std::string label, text;
};

// Numbers by row, step and measure, such as the gradient norm of each tensor.
struct HeatMap {
  std::vector<std::string> rows, measures;
  std::vector<uint64_t> steps;
  std::vector<std::vector<float>> columns;  // of each step: value of row r and measure m at r * kMaxMeasures + m
  uint64_t every = 1, seen = 0;             // every how many lines are kept

  static constexpr size_t kMaxRows = 2048, kMaxMeasures = 6;
  static constexpr size_t kMaxValues = size_t{1} << 21;
};

// What a process wrote about itself at its start.
struct Start {
  uint64_t step = 0;  // the last one before
  nlohmann::ordered_json facts;
};

class RunData {
 public:
  static constexpr size_t kMaxFields = 256, kMaxEvents = 1000, kMaxTexts = 200, kMaxTextBytes = 20'000;

  // A line without its line break. Those that are damaged count and become events.
  void add(std::string_view line);
  // A line that was too long to be read.
  void add_too_long(uint64_t bytes);
  // Adds an event of now; for what the file does not say.
  void add_event(std::string kind, std::string text);

  struct Field {
    size_t table, column;
  };
  // Of a name such as "loss" or "memory.resident"; nullopt if it was never logged.
  std::optional<Field> field(std::string_view name) const;
  const Table& table(Field field) const { return tables_[field.table]; }
  // Names that begin with `prefix` and a dot.
  std::vector<std::string> fields_below(std::string_view prefix) const;

  const std::map<std::string, HeatMap, std::less<>>& heat_maps() const { return heat_maps_; }
  const std::map<std::string, std::vector<Text>, std::less<>>& texts() const { return texts_; }
  const std::deque<Event>& events() const { return events_; }
  const std::optional<Start>& start() const { return start_; }  // the last one
  // Whether the last process wrote that it ended, and whether the run was finished then.
  struct End {
    bool finished;
    nlohmann::ordered_json facts;
  };
  const std::optional<End>& end() const { return end_; }

  const std::string& limit() const { return limit_; }  // what limits the speed; empty if unknown
  uint64_t step() const { return step_; }              // the last one with a loss
  float seconds() const { return seconds_; }           // of training up to there
  uint64_t lines() const { return lines_; }            // all of them
  uint64_t damaged() const { return damaged_; }        // of these

 private:
  // Where a value of a line goes.
  struct Target {
    enum class Kind : uint8_t { kStep, kNumber, kElapsed, kHeat, kNone } kind = Kind::kNone;
    size_t column = 0;  // of the line's table; or the row of the heat map
    size_t measure = 0;
  };
  struct KnownLine {
    LineShape shape;
    std::vector<Target> targets;
    size_t table = 0;
    HeatMap* heat_map = nullptr;
  };
  using Json = nlohmann::ordered_json;

  bool add_known(std::string_view line);
  void take(const KnownLine& known);
  void learn(std::string_view line);
  std::string add_payload(std::string_view line, uint64_t step, const Json& entry);
  void add_numbers(uint64_t step, const Json& entry);
  void add_text(uint64_t step, std::string_view field, const Json& sample);
  void damage(std::string text);

  size_t table_of(std::string_view name);
  std::optional<size_t> column_of(size_t table, const std::string& name);
  HeatMap& heat_map_of(std::string_view name);
  static std::optional<size_t> index_of(std::vector<std::string>& names, std::string_view name, size_t limit);
  std::vector<float>* heat_column(HeatMap& map, uint64_t step);

  std::vector<std::string> table_names_;
  std::vector<Table> tables_;
  std::map<std::string, Field, std::less<>> fields_;
  std::map<std::string, HeatMap, std::less<>> heat_maps_;
  std::map<std::string, std::vector<Text>, std::less<>> texts_;
  std::deque<Event> events_;
  std::optional<Start> start_;
  std::optional<End> end_;
  std::string limit_;
  std::vector<KnownLine> known_;  // the one that was used last comes first
  std::vector<LineValue> values_;
  uint64_t step_ = 0, lines_ = 0, damaged_ = 0;
  float seconds_ = 0;
};

}  // namespace quern::dashboard
