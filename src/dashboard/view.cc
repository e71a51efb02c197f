#include "dashboard/view.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "config/model_settings.h"
#include "dashboard/json_writer.h"

namespace quern::dashboard {
namespace {

using Json = nlohmann::ordered_json;
using Names = std::set<std::string, std::less<>>;

// What a panel's kind takes its data from.
Names fields_of(const Json& panels, std::string_view kind) {
  Names names;
  for (const Json& panel : panels) {
    if (panel["kind"] != kind) continue;
    if (kind != "lines") {
      names.insert(panel["field"].get<std::string>());
      continue;
    }
    for (const Json& series : panel["series"]) names.insert(series["field"].get<std::string>());
  }
  return names;
}

// The step that belongs to a number of tokens: the last one that ends there or before.
double step_of_tokens(const WatchedRun& run, double tokens, bool up) {
  uint64_t low = 0, high = std::max<uint64_t>(run.config().train.steps, run.data().step()) + 1;
  while (low < high) {
    const uint64_t middle = low + (high - low) / 2;
    const auto there = static_cast<double>(run.tokens_until(middle));
    if (up ? there < tokens : there <= tokens) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return static_cast<double>(up ? low : low - std::min<uint64_t>(low, 1));
}

Extent extent_of(const WatchedRun& run, const ViewOptions& options) {
  Extent extent{.by_seconds = options.axis == Axis::kTime};
  const bool tokens = options.axis == Axis::kTokens;
  if (options.from) extent.from = tokens ? step_of_tokens(run, *options.from, true) : *options.from;
  if (options.to) extent.to = tokens ? step_of_tokens(run, *options.to, false) : *options.to;
  return extent;
}

// Writes one run.
class RunView {
 public:
  RunView(const WatchedRun& run, const ViewOptions& options, JsonWriter& out)
      : run_(run), options_(options), out_(out) {}

  void write() {
    out_.open('{');
    write_state();
    write_header();
    write_summary();
    out_.key("panels");
    out_.json(run_.panels());
    write_series();
    write_heat_maps();
    write_tables();
    write_texts();
    write_events();
    out_.close('}');
  }

 private:
  const RunData& data() const { return run_.data(); }

  void write_state();
  void write_header();
  void write_summary();
  void write_series();
  void write_curve(RunData::Field field, const Extent& extent);
  void write_heat_maps();
  void write_heat_map(const HeatMap& map);
  void write_tables();
  void write_texts();
  void write_events();
  void header(std::string_view label, std::string_view value);
  void summary(std::string_view field, std::string_view label, bool lower_is_better, std::string_view unit);
  template <typename Values, typename Write>
  void array(std::string_view name, const Values& values, Write write);

  const WatchedRun& run_;
  const ViewOptions& options_;
  JsonWriter& out_;
};

template <typename Values, typename Write>
void RunView::array(std::string_view name, const Values& values, Write write) {
  out_.key(name);
  out_.open('[');
  for (const auto& value : values) write(value);
  out_.close(']');
}

void RunView::write_state() {
  out_.key("id"), out_.string(run_.id());
  out_.key("name"), out_.string(run_.folder().string());
  out_.key("revision"), out_.number(run_.revision());
  out_.key("state"), out_.string(state_name(run_.state()));
  out_.key("step"), out_.number(data().step());
  out_.key("steps"), out_.number(run_.config().train.steps);
  out_.key("seconds"), out_.number(data().seconds());
  out_.key("seconds_left");
  if (const auto left = run_.seconds_left()) {
    out_.number(*left);
  } else {
    out_.null();
  }
}

void RunView::header(std::string_view label, std::string_view value) {
  if (value.empty()) return;
  out_.open('{');
  out_.key("label"), out_.string(label);
  out_.key("value"), out_.string(value);
  out_.close('}');
}

std::string text_of(const Json& facts, const char* name) {
  const auto found = facts.find(name);
  if (found == facts.end() || found->is_null()) return "";
  return found->is_string() ? found->get<std::string>() : json_text(*found);
}

std::string model_text(const train::RunConfig& config, const Json& facts) {
  const auto& model = config.model;
  const std::string parameters = text_of(facts, "parameters"), trained = text_of(facts, "trainable");
  std::string text =
      fmt::format("{}, {} layers, {} heads, width {}, context {}, {}", train::family_name(model.family), model.layers,
                  model.heads, model.width, model.context, train::precision_name(config.train.precision));
  if (const std::string variants = train::variants_text(config); !variants.empty()) text += "; " + variants;
  if (!parameters.empty()) text += fmt::format("; {} parameters", parameters);
  if (!trained.empty() && trained != parameters) text += fmt::format(", {} of them trained", trained);
  return text;
}

void RunView::write_header() {
  out_.key("header");
  out_.open('[');
  const Json facts = data().start() ? data().start()->facts : Json::object();
  if (!run_.problem().empty()) {
    header("Problem", run_.problem());
  } else {
    header("Model", model_text(run_.config(), facts));
  }
  header("Data", text_of(facts, "data"));
  header("Machine", text_of(facts, "cpu"));
  header("Host", text_of(facts, "host"));
  header("Threads", text_of(facts, "threads"));
  if (const std::string ranks = text_of(facts, "ranks"); ranks != "1") header("Ranks", ranks);
  header("Started", text_of(facts, "time"));
  header("Command", text_of(facts, "command"));
  header("Version", text_of(facts, "version"));
  header("Commit", text_of(facts, "commit"));
  header("Seed", run_.problem().empty() ? fmt::format("{}", run_.config().train.seed) : "");
  header("Limited by", data().limit());
  if (data().end()) header("Weights hash", text_of(data().end()->facts, "weights_hash"));
  if (data().damaged() > 0) header("Damaged lines", fmt::format("{}", data().damaged()));
  out_.close(']');
}

void RunView::summary(std::string_view name, std::string_view label, bool lower_is_better, std::string_view unit) {
  const auto field = data().field(name);
  if (!field) return;
  const Table& table = data().table(*field);
  const auto last = table.last(field->column), best = table.best(field->column, lower_is_better);
  if (!last) return;
  out_.open('{');
  out_.key("label"), out_.string(label);
  out_.key("field"), out_.string(name);
  out_.key("last"), out_.number(last->value);
  out_.key("best");
  if (best) {
    out_.number(best->value);
  } else {
    out_.null();
  }
  out_.key("best_step");
  if (best) {
    out_.number(best->step);
  } else {
    out_.null();
  }
  out_.key("lower_is_better"), out_.boolean(lower_is_better);
  out_.key("unit"), out_.string(unit);
  out_.close('}');
}

void RunView::write_summary() {
  const bool games = run_.config().is_selfplay();
  out_.key("summary");
  out_.open('[');
  summary("loss", "loss", true, games ? "nats per position" : "nats per token");
  summary("validation_loss", "validation loss", true, "nats per token");
  summary("rating.elo", "rating", false, "Elo");
  summary("selfplay.games_per_s", "games", false, "per second");
  summary("tokens_per_s", "speed", false, games ? "squares per second" : "tokens per second");
  summary("memory.peak", "peak memory", true, "bytes");
  out_.close(']');
}

void RunView::write_series() {
  const Extent extent = extent_of(run_, options_);
  out_.key("series");
  out_.open('{');
  for (const std::string& name : fields_of(run_.panels(), "lines")) {
    const auto field = data().field(name);
    if (!field) continue;
    out_.key(name);
    write_curve(*field, extent);
  }
  out_.close('}');
}

void RunView::write_curve(RunData::Field field, const Extent& extent) {
  const Table& table = data().table(field);
  const Table::Curve curve = table.curve(field.column, extent, options_.points);
  out_.open('{');
  array("step", curve.points, [&](const Point& point) { out_.number(point.step); });
  if (run_.config().is_selfplay()) {
    out_.key("tokens"), out_.null();
  } else {
    array("tokens", curve.points, [&](const Point& point) { out_.number(run_.tokens_until(point.step)); });
  }
  array("seconds", curve.points, [&](const Point& point) { out_.number(point.seconds); });
  array("value", curve.points, [&](const Point& point) { out_.number(point.value); });
  if (curve.decimated) {
    array("low", curve.points, [&](const Point& point) { out_.number(point.low); });
    array("high", curve.points, [&](const Point& point) { out_.number(point.high); });
  } else {
    out_.key("low"), out_.null();
    out_.key("high"), out_.null();
  }
  out_.key("points"), out_.number(table.count(field.column));
  out_.close('}');
}

void RunView::write_heat_maps() {
  out_.key("heatmaps");
  out_.open('{');
  if (options_.heat_columns > 0) {
    for (const std::string& name : fields_of(run_.panels(), "heatmap")) {
      const auto found = data().heat_maps().find(name);
      if (found == data().heat_maps().end()) continue;
      out_.key(name);
      write_heat_map(found->second);
    }
  }
  out_.close('}');
}

void RunView::write_heat_map(const HeatMap& map) {
  const Extent extent = extent_of(run_, options_);
  std::vector<size_t> shown;
  for (size_t i = 0; i < map.steps.size(); ++i) {
    const auto step = static_cast<double>(map.steps[i]);
    if (extent.by_seconds || (step >= extent.from && step <= extent.to)) shown.push_back(i);
  }
  while (shown.size() > options_.heat_columns) {
    for (size_t i = 0; i < (shown.size() + 1) / 2; ++i) shown[i] = shown[2 * i];
    shown.resize((shown.size() + 1) / 2);
  }
  out_.open('{');
  array("step", shown, [&](size_t i) { out_.number(map.steps[i]); });
  array("rows", map.rows, [&](const std::string& row) { out_.string(row); });
  out_.key("measures");
  out_.open('{');
  for (const char* measure : {"norm", "update_ratio"}) {
    const auto found = std::find(map.measures.begin(), map.measures.end(), measure);
    if (found == map.measures.end()) continue;
    const auto m = static_cast<size_t>(found - map.measures.begin());
    out_.key(measure);
    out_.open('[');
    for (size_t row = 0; row < map.rows.size(); ++row) {
      out_.open('[');
      for (const size_t i : shown) {
        const size_t at = row * HeatMap::kMaxMeasures + m;
        out_.rough(at < map.columns[i].size() ? map.columns[i][at] : NAN);
      }
      out_.close(']');
    }
    out_.close(']');
  }
  out_.close('}');
  out_.close('}');
}

// Shares, such as those of "operations": the mean over the run, largest first.
void RunView::write_tables() {
  out_.key("tables");
  out_.open('{');
  for (const std::string& name : fields_of(run_.panels(), "table")) {
    std::vector<std::pair<float, std::string>> rows;
    for (const std::string& field_name : data().fields_below(name)) {
      const auto field = data().field(field_name);
      const Table::Curve all = data().table(*field).curve(field->column, {}, 1);
      if (all.points.empty() || !std::isfinite(all.points[0].value)) continue;
      rows.emplace_back(100 * all.points[0].value, field_name.substr(name.size() + 1));
    }
    if (rows.empty()) continue;
    std::sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
    out_.key(name);
    out_.open('{');
    out_.key("columns");
    out_.json(Json::array({{{"label", "operation"}}, {{"label", "share"}, {"unit", "%"}}}));
    array("rows", rows, [&](const auto& row) {
      out_.open('[');
      out_.string(row.second);
      out_.rough(row.first);
      out_.close(']');
    });
    out_.close('}');
  }
  out_.close('}');
}

void RunView::write_texts() {
  out_.key("texts");
  out_.open('{');
  for (const auto& [name, texts] : data().texts()) {
    const size_t first = texts.size() - std::min(texts.size(), options_.texts);
    array(name, std::span(texts).subspan(first), [&](const Text& text) {
      out_.open('{');
      out_.key("step"), out_.number(text.step);
      out_.key("label"), out_.string(text.label);
      out_.key("text"), out_.string(text.text);
      out_.close('}');
    });
  }
  out_.close('}');
}

void RunView::write_events() {
  const auto& events = data().events();
  out_.key("events");
  out_.open('[');
  for (size_t i = events.size() - std::min(events.size(), options_.events); i < events.size(); ++i) {
    const Event& event = events[i];
    out_.open('{');
    out_.key("step"), out_.number(event.step);
    out_.key("seconds"), out_.number(event.seconds);
    out_.key("kind"), out_.string(event.kind);
    out_.key("text"), out_.string(event.text);
    out_.close('}');
  }
  out_.close(']');
}

}  // namespace

std::string view_json(std::span<const std::unique_ptr<WatchedRun>> runs, const ViewOptions& options,
                      std::string_view version) {
  JsonWriter out;
  out.open('{');
  out.key("version"), out.number(uint64_t{1});
  out.key("quern"), out.string(version);
  out.key("runs");
  out.open('[');
  for (const auto& run : runs) {
    if (options.run.empty() || run->id() == options.run) RunView(*run, options, out).write();
  }
  out.close(']');
  out.close('}');
  return out.take();
}

}  // namespace quern::dashboard
