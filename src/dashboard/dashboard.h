// The dashboard: watches runs by their files, and serves the page with them.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "dashboard/http_server.h"
#include "dashboard/view.h"
#include "dashboard/watched_run.h"

namespace quern::dashboard {

struct DashboardOptions {
  HttpServerOptions server = {};
  std::string version = {};                         // "0.1.0 (abc1234)"
  std::vector<std::filesystem::path> runs = {};     // directories of runs
  std::vector<std::filesystem::path> folders = {};  // directories with runs below them, also with those to come
  bool expected = false;                            // the runs may not exist yet: this process will train them
};

// Nothing is read or written as long as nobody looks. Of what it shows, it keeps in memory what RunData describes.
class Dashboard {
 public:
  static constexpr size_t kMaxRuns = 200;

  // Listens. Error as from HttpServer.
  explicit Dashboard(DashboardOptions options);

  std::string url() const;
  uint16_t port() const { return server_.port(); }

  // Serves until `stop` is true; looks at it at least every half second.
  void serve(const std::atomic<bool>& stop);
  void wake() noexcept { server_.wake(); }

 private:
  HttpResponse respond(const HttpRequest& request);
  HttpResponse view(const HttpRequest& request);
  void refresh();
  void find_runs();
  uint64_t revision() const;
  void tell_changes();
  std::string change_event() const;
  ViewOptions default_options() const;

  DashboardOptions options_;
  HttpServer server_;
  std::vector<std::unique_ptr<WatchedRun>> runs_;
  std::set<std::filesystem::path> known_;
  std::shared_ptr<const std::string> page_;
  std::shared_ptr<const std::string> whole_view_;  // the one without a query
  uint64_t whole_revision_ = 0, told_revision_ = 0;
  double refreshed_ = -1e9, searched_ = -1e9, told_ = -1e9;
  double pause_;  // between two events
};

// A dashboard on a thread of its own, for a process that trains.
class DashboardThread {
 public:
  explicit DashboardThread(DashboardOptions options);
  DashboardThread(const DashboardThread&) = delete;
  DashboardThread& operator=(const DashboardThread&) = delete;
  ~DashboardThread();

  const Dashboard& dashboard() const { return dashboard_; }

 private:
  Dashboard dashboard_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace quern::dashboard
