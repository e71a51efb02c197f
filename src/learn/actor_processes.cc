#include "learn/actor_processes.h"

#include <fmt/format.h>

#include <chrono>
#include <utility>

#include "core/error.h"
#include "learn/actor_files.h"
#include "learn/actor_report.h"

namespace quern::learn {
namespace {

constexpr auto kLookEvery = std::chrono::milliseconds(20);
constexpr size_t kMaxFailures = 3;  // in a row, without a report, before the run ends

}  // namespace

ActorProcesses::ActorProcesses(const ActorContext& run, const Network& network, uint64_t launches)
    : run_(run), launches_(launches) {
  if (run.command.empty()) {
    throw Error("[selfplay] selfplay.processes: expected 0 without the quern program to start, found {}",
                run.config.selfplay.processes);
  }
  open_actor_folder(run.folder, run.config);
  write_weights(run.folder, version_, network);
  for (uint64_t i = 0; i < run.config.selfplay.processes; ++i) actors_.push_back({launch()});
  watcher_ = std::jthread([this] { watch(); });
}

ActorProcesses::~ActorProcesses() {
  stopping_.store(true, std::memory_order_relaxed);
  if (watcher_.joinable()) watcher_.join();
  for (Actor& actor : actors_) actor.process.ask_to_end();  // all at once, before the first is waited for
  actors_.clear();
  remove_actor_folder(run_.folder);
}

ChildProcess ActorProcesses::launch() {
  const uint64_t number = launches_.load(std::memory_order_relaxed);
  first_game(number);  // an Error after too many
  std::vector<std::string> command = run_.command;
  command.insert(command.end(), {"--run", run_.folder.string(), "--launch", std::to_string(number)});
  ChildProcess process(command);
  launches_.store(number + 1, std::memory_order_relaxed);
  return process;
}

Totals ActorProcesses::totals() const {
  const std::lock_guard lock(mutex_);
  Totals sum = ended_;
  for (const Actor& actor : actors_) sum = sum + actor.totals;
  return sum;
}

void ActorProcesses::look() {
  std::vector<std::string> warnings;
  std::string error;
  {
    const std::lock_guard lock(mutex_);
    warnings = std::exchange(warnings_, {});
    error = error_;
  }
  for (const std::string& warning : warnings) run_.warn(warning);
  if (!error.empty()) throw Error("{}", error);
}

void ActorProcesses::publish(std::shared_ptr<const Network> network) {
  write_weights(run_.folder, ++version_, *network);
}

void ActorProcesses::watch() {
  while (!stopping_.load(std::memory_order_relaxed) && !failed()) {
    for (Actor& actor : actors_) watch(actor);
    std::this_thread::sleep_for(kLookEvery);
  }
}

void ActorProcesses::watch(Actor& actor) {
  const std::optional<std::string> end = actor.process.end();  // first: all that it wrote is then there to be read
  actor.process.read_lines([&](const std::string& line) { add_report(actor, line); });
  if (end) restart(actor, *end);
}

void ActorProcesses::add_report(Actor& actor, const std::string& line) {
  const std::optional<Totals> totals = parse_actor_report(line);
  if (!totals) return;
  actor.failures = 0;
  const std::lock_guard lock(mutex_);
  actor.totals = *totals;
}

void ActorProcesses::restart(Actor& actor, const std::string& end) {
  if (++actor.failures >= kMaxFailures) {
    return fail(
        fmt::format("[selfplay] expected actor processes that play, found that one ended {} {} times before it "
                    "reported a game",
                    end, actor.failures));
  }
  try {
    ChildProcess process = launch();
    const std::lock_guard lock(mutex_);
    warnings_.push_back(
        fmt::format("an actor process (pid {}) ended {}; another one was started", actor.process.pid(), end));
    ended_ = ended_ + std::exchange(actor.totals, {});
    actor.process = std::move(process);
  } catch (const Error& error) {
    fail(error.what());
  }
}

void ActorProcesses::fail(const std::string& error) {
  {
    const std::lock_guard lock(mutex_);
    error_ = error;
  }
  failed_.store(true, std::memory_order_release);
}

}  // namespace quern::learn
