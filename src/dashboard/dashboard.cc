#include "dashboard/dashboard.h"

#include <fmt/format.h>
#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <csignal>
#include <utility>

#include "core/clock.h"
#include "core/error.h"
#include "dashboard/json_writer.h"
#include "dashboard/page.h"
#include "report/find_runs.h"

namespace quern::dashboard {
namespace {

constexpr double kRefresh = 0.4;   // seconds between looks at the files
constexpr double kSearch = 5;      // between searches for new runs
constexpr double kMinPause = 0.5;  // between events
// Making a view may take this share of one core's time: a run of a million lines is shown less often.
constexpr double kViewShare = 0.005;
constexpr size_t kMaxPoints = 20'000;

HttpResponse not_found() {
  return {.status = 404,
          .status_text = "Not Found",
          .body = std::make_shared<const std::string>("there is /, /api/view and /api/events\n")};
}

HttpResponse bad_query(const std::string& name, const char* expected) {
  return {.status = 400,
          .status_text = "Bad Request",
          .body = std::make_shared<const std::string>(fmt::format("{}: expected {}\n", name, expected))};
}

HttpResponse json_response(std::shared_ptr<const std::string> body) {
  return {.type = "application/json", .body = std::move(body)};
}

std::optional<double> number(const std::string& text) {
  double value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

std::optional<Axis> axis_of(const std::string& name) {
  if (name == "step") return Axis::kStep;
  if (name == "tokens") return Axis::kTokens;
  if (name == "time") return Axis::kTime;
  return std::nullopt;
}

bool is_loopback(const std::string& host) { return host == "127.0.0.1" || host == "localhost" || host == "::1"; }

}  // namespace

Dashboard::Dashboard(DashboardOptions options)
    : options_(std::move(options)),
      server_(options_.server),
      page_(std::make_shared<const std::string>(page_html())),
      pause_(kMinPause) {
  for (const auto& folder : options_.runs) {
    if (known_.insert(folder).second) {
      runs_.push_back(std::make_unique<WatchedRun>(fmt::format("{}", runs_.size()), folder, options_.expected));
    }
  }
}

std::string Dashboard::url() const {
  const std::string& host = options_.server.host;
  const bool everywhere = host == "0.0.0.0" || host == "::" || host == "[::]";
  const std::string shown = everywhere || is_loopback(host)                         ? "127.0.0.1"
                            : host.find(':') != std::string::npos && host[0] != '[' ? "[" + host + "]"
                                                                                    : host;
  return fmt::format("http://{}:{}/", host == "::1" ? "[::1]" : shown, server_.port());
}

void Dashboard::serve(const std::atomic<bool>& stop) {
  constexpr double kLook = 0.5;
  const auto handler = [this](const HttpRequest& request) { return respond(request); };
  while (!stop.load(std::memory_order_relaxed)) {
    server_.serve(server_.streams() > 0 ? std::min(kLook, kRefresh) : kLook, handler);
    if (server_.streams() > 0) tell_changes();
  }
}

// No path ever becomes the name of a file.
HttpResponse Dashboard::respond(const HttpRequest& request) {
  if (request.path == "/") return {.type = "text/html; charset=utf-8", .body = page_};
  if (request.path == "/api/view") return view(request);
  if (request.path != "/api/events") return not_found();
  refresh();
  return {.type = "text/event-stream",
          .body = std::make_shared<const std::string>("retry: 2000\n" + change_event()),
          .stream = true};
}

// Fewer points of many runs, so that the view of all of them stays small.
ViewOptions Dashboard::default_options() const {
  ViewOptions options;
  const size_t runs = std::max<size_t>(1, runs_.size());
  if (runs <= 4) return options;
  options.points = std::max<size_t>(200, 4 * options.points / runs);
  options.heat_columns = std::max<size_t>(20, 4 * options.heat_columns / runs);
  options.texts = options.events = std::max<size_t>(20, 800 / runs);
  return options;
}

HttpResponse Dashboard::view(const HttpRequest& request) {
  refresh();
  ViewOptions options = default_options();
  bool whole = true;
  for (const auto& [name, value] : request.query) {
    if (name == "since") continue;  // the answer is always complete
    whole = false;
    if (name == "run") {
      options.run = value;
      options.points = ViewOptions().points;
      options.heat_columns = ViewOptions().heat_columns;
      options.texts = ViewOptions().texts;
      options.events = ViewOptions().events;
    }
  }
  for (const auto& [name, value] : request.query) {
    if (name == "x") {
      const auto axis = axis_of(value);
      if (!axis) return bad_query(name, "step, tokens or time");
      options.axis = *axis;
    } else if (name == "from" || name == "to" || name == "points") {
      const auto parsed = number(value);
      if (!parsed) return bad_query(name, "a number");
      if (name == "from") options.from = parsed;
      if (name == "to") options.to = parsed;
      if (name == "points") {
        options.points = static_cast<size_t>(std::clamp(*parsed, 10.0, static_cast<double>(kMaxPoints)));
      }
    }
  }
  if (!whole) return json_response(std::make_shared<const std::string>(view_json(runs_, options, options_.version)));
  if (whole_view_ == nullptr || whole_revision_ != revision()) {
    const double begin = seconds_now();
    whole_view_ = std::make_shared<const std::string>(view_json(runs_, options, options_.version));
    whole_revision_ = revision();
    pause_ = std::max(kMinPause, (seconds_now() - begin) / kViewShare);
  }
  return json_response(whole_view_);
}

void Dashboard::refresh() {
  const double now = seconds_now();
  if (now - refreshed_ < kRefresh) return;
  if (now - searched_ >= kSearch) find_runs();
  const train::HeldLocks locks;
  for (const auto& run : runs_) run->refresh(locks);
  refreshed_ = seconds_now();
}

void Dashboard::find_runs() {
  for (const auto& folder : options_.folders) {
    for (const auto& found : report::find_runs(folder)) {
      if (runs_.size() == kMaxRuns || !known_.insert(found).second) continue;
      runs_.push_back(std::make_unique<WatchedRun>(fmt::format("{}", runs_.size()), found));
    }
  }
  searched_ = seconds_now();
}

uint64_t Dashboard::revision() const {
  uint64_t sum = 0;
  for (const auto& run : runs_) sum += run->revision();
  return sum;
}

void Dashboard::tell_changes() {
  if (seconds_now() - told_ < pause_) return;
  refresh();
  if (revision() == told_revision_) return;
  told_revision_ = revision();
  told_ = seconds_now();
  server_.send_event(change_event());
}

std::string Dashboard::change_event() const {
  JsonWriter out;
  out.open('{');
  out.key("runs");
  out.open('[');
  for (const auto& run : runs_) {
    out.open('{');
    out.key("id"), out.string(run->id());
    out.key("step"), out.number(run->data().step());
    out.key("state"), out.string(state_name(run->state()));
    out.key("revision"), out.number(run->revision());
    out.close('}');
  }
  out.close(']');
  out.close('}');
  return fmt::format("event: change\nid: {}\ndata: {}\n\n", revision(), out.take());
}

// Training comes first: the thread gets what its threads leave, and takes none of their signals.
DashboardThread::DashboardThread(DashboardOptions options) : dashboard_(std::move(options)) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] {
    constexpr int kLowest = 19;
    setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), kLowest);
    try {
      dashboard_.serve(stop_);
    } catch (const std::exception&) {
      // out of memory, say: the run goes on without its dashboard
    }
  });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

DashboardThread::~DashboardThread() {
  stop_.store(true, std::memory_order_relaxed);
  dashboard_.wake();
  thread_.join();
}

}  // namespace quern::dashboard
