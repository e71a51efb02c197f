#include "report/run_log.h"

#include <fmt/format.h>

#include <cmath>
#include <fstream>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>

#include "core/descriptor.h"
#include "core/json.h"
#include "core/text.h"

namespace quern::report {
namespace {

using Json = nlohmann::json;
using train::MemoryUse;

struct NumberField {
  const char* name;
  std::optional<double> LoggedStep::*member;
};
constexpr NumberField kNumbers[] = {{"loss", &LoggedStep::loss},
                                    {"validation_loss", &LoggedStep::validation_loss},
                                    {"rate", &LoggedStep::rate},
                                    {"gradient_norm", &LoggedStep::gradient_norm},
                                    {"tokens_per_s", &LoggedStep::tokens_per_s},
                                    {"elapsed", &LoggedStep::elapsed}};

// Reads line by line. Returns for each line a description of the problem, or an empty string.
class Reader {
 public:
  std::string read(const std::string& line) {
    const Json entry = parse_json(line);
    if (!entry.is_object()) return "expected a JSON object, found " + in_quotes(line, 40);
    const auto number = entry.find("step");
    if (number == entry.end() || !number->is_number_unsigned()) return "expected a step, found " + in_quotes(line, 40);
    LoggedStep step = known(number->get<uint64_t>());
    bool any = false;
    for (const auto& [name, member] : kNumbers) {
      const auto found = entry.find(name);
      if (found == entry.end()) continue;
      if (!found->is_number() && !found->is_null()) return wrong(name, "a number", *found);
      step.*member = found->is_null() ? std::numeric_limits<double>::quiet_NaN() : found->get<double>();
      any = true;
    }
    if (entry.contains("loss")) step.skipped = entry.contains("skipped") && entry["skipped"] == true;
    if (const auto memory = entry.find("memory"); memory != entry.end()) {
      if (!memory->is_object()) return wrong("memory", "an object", *memory);
      step.memory = memory_of(*memory);
    }
    if (const auto warning = entry.find("warning"); warning != entry.end()) {
      if (!warning->is_string()) return wrong("warning", "text", *warning);
      warnings.push_back({step.step, printable(warning->get<std::string>())});
    }
    if (const auto incident = entry.find("incident"); incident != entry.end()) {
      std::string problem = read_incident(*incident, step.step);
      if (!problem.empty()) return problem;
    }
    if (any) steps[step.step] = step;
    return {};
  }

  std::map<uint64_t, LoggedStep> steps;
  std::vector<LoggedWarning> warnings;
  std::vector<LoggedIncident> incidents;

 private:
  std::string read_incident(const Json& entry, uint64_t resumed_after) {
    if (!entry.is_object()) return wrong("incident", "an object", entry);
    LoggedIncident incident;
    incident.resumed_after = resumed_after;
    const auto step = entry.find("step");
    if (step == entry.end() || !step->is_number_unsigned()) return wrong("incident", "a step", entry);
    incident.step = step->get<uint64_t>();
    for (const auto& [name, member] : {std::pair{"text", &LoggedIncident::text},
                                       {"action", &LoggedIncident::action},
                                       {"folder", &LoggedIncident::folder}}) {
      const auto found = entry.find(name);
      if (found == entry.end() || !found->is_string())
        return wrong("incident", fmt::format("a text `{}`", name), entry);
      incident.*member = printable(found->get<std::string>());
    }
    incidents.push_back(std::move(incident));
    return {};
  }

  LoggedStep known(uint64_t number) const {
    const auto found = steps.find(number);
    if (found != steps.end()) return found->second;
    LoggedStep step;
    step.step = number;
    return step;
  }

  static std::string wrong(std::string_view name, std::string_view expected, const Json& found) {
    return fmt::format("{}: expected {}, found {}", name, expected, in_quotes(json_text(found), 40));
  }

  static MemoryUse memory_of(const Json& entry) {
    MemoryUse memory;
    for (const auto& [name, member] : train::kMemoryFields) {
      const auto found = entry.find(name);
      if (found != entry.end() && found->is_number_unsigned()) memory.*member = found->get<uint64_t>();
    }
    return memory;
  }
};

}  // namespace

RunLog read_run_log(const std::filesystem::path& file, uint64_t limit) {
  if (!std::filesystem::exists(file)) return {};
  // Error for a directory, or a file without read permission.
  const auto bytes = static_cast<uint64_t>(regular_file_status(Descriptor(file), file).st_size);
  std::ifstream stream(file);
  Reader reader;
  RunLog log;
  uint64_t number = 0;
  std::string line;
  if (bytes > limit) {
    stream.seekg(static_cast<std::streamoff>(bytes - limit));
    std::getline(stream, line);  // the rest of a line that began before
  }
  while (std::getline(stream, line)) {
    const std::string problem = reader.read(line);
    ++number;
    if (!problem.empty()) log.damaged.push_back(fmt::format("{}:{}: {}", file.filename().string(), number, problem));
  }
  for (auto& [step, logged] : reader.steps) log.steps.push_back(logged);
  log.warnings = std::move(reader.warnings);
  log.incidents = std::move(reader.incidents);
  return log;
}

std::string to_csv(const RunLog& log) { return csv_header() + csv_lines(log); }

std::string csv_header() {
  std::string text = "step";
  for (const NumberField& field : kNumbers) text += fmt::format(",{}", field.name);
  text += ",skipped";
  for (const train::MemoryField& field : train::kMemoryFields) text += fmt::format(",memory_{}", field.name);
  return text + "\n";
}

std::string csv_lines(const RunLog& log, std::string_view prefix) {
  std::string text;
  for (const LoggedStep& step : log.steps) {
    text += fmt::format("{}{}", prefix, step.step);
    for (const NumberField& field : kNumbers) {
      const auto& value = step.*field.member;
      text += value ? fmt::format(",{}", *value) : ",";
    }
    text += step.loss ? fmt::format(",{}", step.skipped ? 1 : 0) : ",";
    for (const train::MemoryField& field : train::kMemoryFields) {
      text += step.memory ? fmt::format(",{}", (*step.memory).*field.member) : ",";
    }
    text += "\n";
  }
  return text;
}

}  // namespace quern::report
