// Training while five pages show it.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "benchmarks/train_run.h"
#include "benchmarks/workloads.h"
#include "config/run_folder.h"
#include "core/clock.h"
#include "core/error.h"
#include "core/temporary_folder.h"
#include "dashboard/dashboard.h"
#include "report/run_files.h"

namespace quern::bench {
namespace {

constexpr double kBar = 0.99;
constexpr size_t kViewers = 5;
constexpr uint64_t kLoggedBefore = 20'000;  // a long run: its curves have all the points that a page gets

class Link {
 public:
  explicit Link(uint16_t port) : descriptor_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(descriptor_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) {
      throw Error("[bench] the dashboard does not answer");
    }
    const timeval limit = {.tv_sec = 0, .tv_usec = 100'000};
    ::setsockopt(descriptor_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
  }
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;
  ~Link() { ::close(descriptor_); }

  void ask(const char* path) const {
    const std::string text = fmt::format("GET {} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", path);
    static_cast<void>(::send(descriptor_, text.data(), text.size(), MSG_NOSIGNAL));
  }
  // Bytes that arrive within a tenth of a second; nullopt at the end.
  std::optional<std::string> read() const {
    std::string text(65536, '\0');
    const ssize_t count = ::recv(descriptor_, text.data(), text.size(), 0);
    if (count == 0) return std::nullopt;
    text.resize(count > 0 ? static_cast<size_t>(count) : 0);
    return text;
  }

 private:
  int descriptor_;
};

// What an open page does: fetches the view after every event.
class Viewers {
 public:
  explicit Viewers(uint16_t port) {
    for (size_t i = 0; i < kViewers; ++i) threads_.emplace_back([this, port] { look(port); });
  }
  Viewers(const Viewers&) = delete;
  Viewers& operator=(const Viewers&) = delete;
  ~Viewers() {
    stop_ = true;
    for (std::thread& thread : threads_) thread.join();
  }
  static std::atomic<uint64_t> views, bytes;

 private:
  void look(uint16_t port) {
    const Link events(port);
    events.ask("/api/events");
    while (!stop_) {
      const auto text = events.read();
      if (!text) return;
      if (text->find("event: change") == std::string::npos) continue;
      const Link link(port);
      link.ask("/api/view");
      for (auto part = link.read(); part && !stop_; part = link.read()) bytes += part->size();
      ++views;
    }
  }

  std::atomic<bool> stop_{false};
  std::vector<std::thread> threads_;
};
std::atomic<uint64_t> Viewers::views{0}, Viewers::bytes{0};

void write_long_log(const std::filesystem::path& file) {
  std::ofstream out(file);
  for (uint64_t step = 1; step <= kLoggedBefore; ++step) {
    out << fmt::format(
        R"({{"step":{},"loss":{},"rate":0.001,"gradient_norm":0.5,"tokens_per_s":1000,"elapsed":{},"mfu":0.5,"busy":1}})",
        step, 3.0 / static_cast<double>(step), 0.1 * static_cast<double>(step));
    out << '\n';
  }
}

}  // namespace

void bench_dashboard(Context& context) {
  train::RunConfig config = train::preset("tiny");
  config.train.threads = context.threads();
  config.train.steps = 1'000'000'000;
  const TemporaryFolder folder;
  train::write_config(config, folder.path());
  write_long_log(folder / "metrics.jsonl");
  report::RunFiles files(folder.path(), config);
  files.on_start({.first_step = kLoggedBefore + 1, .steps = config.train.steps});
  dashboard::DashboardOptions options;
  options.server.port = 0;
  options.runs = {folder.path()};
  const dashboard::DashboardThread server(options);

  const uint64_t vocabulary = vocabulary_of_preset("tiny");
  const auto tokens = random_tokens(vocabulary);
  TrainRun run(config, vocabulary, *tokens);
  run.steps(5);
  uint64_t step = kLoggedBefore;
  const double round_seconds = context.quick() ? 0.1 : 2;
  const auto speed = [&] {
    uint64_t count = 0;
    const double begin = seconds_now();
    while (seconds_now() - begin < round_seconds) {
      train::StepReport report = run.trainer->step();
      report.step = ++step;
      files.on_step(report);
      ++count;
    }
    return static_cast<double>(count * config.sequences_per_step() * config.model.context) / (seconds_now() - begin);
  };
  std::vector<double> alone, watched;
  for (int round = 0; round < (context.quick() ? 1 : 20); ++round) {
    const auto with_viewers = [&] {
      const Viewers viewers(server.dashboard().port());
      watched.push_back(speed());
    };
    if (round % 2 == 0) with_viewers();
    alone.push_back(speed());
    if (round % 2 == 1) with_viewers();
  }
  const auto median = [](std::vector<double>& values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
  };
  if (Viewers::views == 0) context.wrong_answer("dashboard/tiny", "no page got a view");
  context.add(fmt::format("dashboard/tiny/{} pages", kViewers), median(watched), "tokens/s", "no page", median(alone),
              kBar);
}

}  // namespace quern::bench
