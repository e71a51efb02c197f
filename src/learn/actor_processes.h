// The learner's side of actor processes: starts them, starts those that end again, and counts what they report.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "learn/async_actors.h"
#include "learn/child_process.h"

namespace quern::learn {

// A process gets settings and weights through files (learn/actor_files.h), adds to the shared replay buffer, and writes
// its counters as a line to its standard output several times a second. It ends when its standard input does, which the
// kernel closes however this process ends. A thread of its own watches the processes, since the learner may be waiting
// for rows that no process would add.
class ActorProcesses final : public AsyncActors {
 public:
  ActorProcesses(const ActorContext& run, const Network& network, uint64_t launches);
  ~ActorProcesses() override;

  Totals totals() const override;
  bool failed() const noexcept override { return failed_.load(std::memory_order_acquire); }
  void look() override;
  void publish(std::shared_ptr<const Network> network) override;
  uint64_t launches() const override { return launches_.load(std::memory_order_relaxed); }

 private:
  struct Actor {
    ChildProcess process;
    Totals totals = {};   // as reported last
    size_t failures = 0;  // in a row, without a report
  };

  ChildProcess launch();
  void watch();
  void watch(Actor& actor);
  void restart(Actor& actor, const std::string& end);
  void fail(const std::string& error);
  void add_report(Actor& actor, const std::string& line);

  const ActorContext run_;
  uint64_t version_ = 0;
  std::atomic<uint64_t> launches_;
  std::atomic<bool> failed_{false}, stopping_{false};
  mutable std::mutex mutex_;  // of the three below; not on the path of a step
  Totals ended_;              // of processes that are gone
  std::vector<std::string> warnings_;
  std::string error_;
  std::vector<Actor> actors_;  // of the watching thread; their totals are guarded
  std::jthread watcher_;       // last: it uses the rest
};

}  // namespace quern::learn
