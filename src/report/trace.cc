#include "report/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/files.h"
#include "core/json.h"
#include "core/thread_profile.h"

namespace quern::report {
namespace {

using Lanes = std::vector<std::vector<ProfileEvent>>;

std::string quoted(std::string_view text) { return json_text(nlohmann::json(text)); }

bool has_step(const ProfileEvent& event) { return event.step != ProfilePlace::kNone; }

// The first complete step. Calls are stored in the order in which they end, and steps do not overlap, so a thread can
// have lost calls only of the first step that it still has, or of earlier ones.
uint32_t first_whole_step(const Profile& profile, const Lanes& lanes) {
  uint32_t first = 0;
  for (size_t i = 0; i < lanes.size(); ++i) {
    if (profile.thread(i).forgotten_until() == 0) continue;
    uint32_t known = ProfilePlace::kNone - 1;
    for (const ProfileEvent& event : lanes[i]) known = std::min(known, event.step);
    first = std::max(first, known + 1);
  }
  return first;
}

// The start of the first of these steps, so that waits, which belong to no step, are cut there too; INT64_MAX if there
// is none.
int64_t begin_of(const Lanes& lanes, uint32_t first_step) {
  int64_t begin = INT64_MAX;
  for (const auto& lane : lanes) {
    for (const ProfileEvent& event : lane) {
      if (has_step(event) && event.step >= first_step) begin = std::min(begin, event.begin);
    }
  }
  return begin;
}

std::string lane_name(size_t lane, size_t workers) {
  if (lane < workers) return fmt::format("worker {}", lane);
  return lane == workers ? "trainer" : fmt::format("thread {}", lane);
}

// A call; times are in microseconds since `start`.
void append(std::string& out, const ProfileEvent& event, size_t lane, int64_t start, const std::string& name) {
  const auto microseconds = [](int64_t ns) { return static_cast<double>(ns) * 1e-3; };
  out += fmt::format(R"({{"ph":"X","pid":1,"tid":{},"ts":{:.3f},"dur":{:.3f},"name":{},"args":{{)", lane,
                     microseconds(event.begin - start), microseconds(event.end - event.begin), name);
  const char* comma = "";
  const auto argument = [&](const char* key, int64_t value) {
    out += fmt::format("{}\"{}\":{}", comma, key, value);
    comma = ",";
  };
  if (has_step(event)) argument("step", event.step);
  if (event.micro_batch != ProfilePlace::kNone) argument("micro_batch", event.micro_batch);
  if (event.layer != Timed::kNoLayer) argument("layer", event.layer);
  out += "}},\n";
}

}  // namespace

TraceInfo write_trace(const Profile& profile, size_t workers, const std::filesystem::path& path) {
  Lanes lanes;
  for (size_t i = 0; i < profile.threads(); ++i) lanes.push_back(profile.thread(i).events());
  TraceInfo info;
  int64_t start = begin_of(lanes, first_whole_step(profile, lanes));
  if (start == INT64_MAX) {
    info.complete = false;
    start = 0;
    for (size_t i = 0; i < lanes.size(); ++i) start = std::max(start, profile.thread(i).forgotten_until());
  }
  std::vector<std::string> names(kMaxRegions);
  AtomicFile file(path);
  std::string out;
  const auto flush = [&](size_t above) {
    if (out.size() <= above) return;
    file.writer().write(out);
    out.clear();
  };
  out += "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n";
  for (size_t lane = 0; lane < lanes.size(); ++lane) {
    out += fmt::format(R"({{"ph":"M","pid":1,"tid":{0},"name":"thread_name","args":{{"name":"{1}"}}}},)"
                       "\n",
                       lane, lane_name(lane, workers));
    for (const ProfileEvent& event : lanes[lane]) {
      if (event.begin < start) continue;
      std::string& name = names[event.region];
      if (name.empty()) name = quoted(region_name(event.region));
      append(out, event, lane, start, name);
      ++info.calls;
      if (has_step(event)) {
        info.first_step = info.first_step == 0 ? event.step : std::min<uint64_t>(info.first_step, event.step);
        info.last_step = std::max<uint64_t>(info.last_step, event.step);
      }
      flush(size_t{1} << 16);
    }
  }
  out += fmt::format(R"({{"ph":"M","pid":1,"name":"process_name","args":{{"name":"quern train"}}}})"
                     "\n]}}\n");
  flush(0);
  file.commit();
  info.bytes = file.writer().written();
  return info;
}

void check_trace_path(const std::filesystem::path& path) {
  if (std::filesystem::is_directory(path)) {
    throw Error("[trace] {}: expected a writable file, found a folder", path.string());
  }
  const AtomicFile attempt(path);
}

}  // namespace quern::report
