// Several threads, and several processes, that add to and sample from one replay buffer concurrently, against a single
// one.
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <exception>
#include <iterator>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "benchmarks/replay_rows.h"
#include "benchmarks/workloads.h"
#include "core/error.h"
#include "replay/buffer.h"
#include "replay/sampler.h"

namespace quern::bench {
namespace {

using replay::ReplayBuffer;
using replay::Sampler;
using replay::Storage;

struct Mix {
  const char* name;
  size_t writers, readers;
  size_t workers() const { return writers + readers; }
};
constexpr Mix kMixes[] = {{"4w", 4, 0}, {"4r", 0, 4}, {"2w2r", 2, 2}};

// Shared by all workers of a group, threads or processes. In every round they start together, and the clock stops when
// the last one is done.
struct Rounds {
  std::atomic<size_t> ready{0}, begun{0}, done{0}, failed{0};
  std::atomic<bool> stop{false};

  // Polls every 20 us: a waiting group must not take cores from the one that is timed.
  template <typename Condition>
  static void wait_until(Condition condition) {
    while (!condition()) std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
};

// A worker that adds or samples `batches` batches per round, or alternates between both.
struct Worker {
  bool adds = true, samples = false;
  size_t batches = 0;

  void run(ReplayBuffer& buffer, Rounds& rounds, uint64_t seed) const {
    ReplayRows rows, got;
    rows.fill();
    const std::vector<std::byte*> from = rows.arrays(), to = got.arrays();
    const std::vector<const std::byte*> in(from.begin(), from.end());
    Sampler sampler(buffer, seed);
    rounds.ready.fetch_add(1);
    for (size_t round = 1;; ++round) {
      Rounds::wait_until([&] { return rounds.begun.load() >= round || rounds.stop.load(); });
      if (rounds.stop.load()) break;
      for (size_t i = 0; i < batches; ++i) {
        if (adds) buffer.add(in, kReplayBatch);
        if (samples) sampler.sample({.rows = kReplayBatch}, {to});
      }
      rounds.done.fetch_add(1);
    }
    if (samples && !got.all_of(rows)) rounds.failed.fetch_add(1);
  }
};

// The first `writers` of a mix add, the others sample; a single worker does everything in the mix.
std::vector<Worker> together(const Mix& mix, size_t batches) {
  std::vector<Worker> workers;
  for (size_t i = 0; i < mix.workers(); ++i) workers.push_back({i < mix.writers, i >= mix.writers, batches});
  return workers;
}
std::vector<Worker> alone(const Mix& mix, size_t batches) {
  const bool both = mix.writers > 0 && mix.readers > 0;
  return {{mix.writers > 0, mix.readers > 0, both ? batches * mix.writers : batches * mix.workers()}};
}

// Workers that are threads using `buffer`, or processes that attach to `storage`.
class Group {
 public:
  Group(std::vector<Worker> workers, ReplayBuffer& buffer, const Storage& storage) : workers_(std::move(workers)) {
    void* memory = mmap(nullptr, sizeof(Rounds), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw Error("[bench] cannot map a page");
    rounds_ = new (memory) Rounds;
    for (size_t i = 0; i < workers_.size(); ++i) {
      if (storage.kind == Storage::Kind::kPrivate) {
        threads_.emplace_back([this, &buffer, i] { workers_[i].run(buffer, *rounds_, i); });
      } else {
        processes_.push_back(start_process(storage, i));
      }
    }
    Rounds::wait_until([&] { return rounds_->ready.load() + rounds_->failed.load() >= workers_.size(); });
  }
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;
  ~Group() {
    end();
    munmap(rounds_, sizeof(Rounds));
  }

  // Returns when all workers are done.
  void round() {
    const size_t number = rounds_->begun.fetch_add(1) + 1;
    Rounds::wait_until([&] { return rounds_->done.load() >= number * workers_.size() || rounds_->failed.load() > 0; });
  }

  // Whether every sampled row was right. No more rounds after this.
  bool end() {
    rounds_->stop = true;
    threads_.clear();
    for (const pid_t process : processes_) waitpid(process, nullptr, 0);
    processes_.clear();
    return rounds_->failed.load() == 0;
  }

 private:
  // The child maps and touches the memory before it reports ready.
  pid_t start_process(const Storage& storage, size_t index) {
    std::fflush(nullptr);
    const pid_t child = fork();
    if (child < 0) throw Error("[bench] cannot start a process");
    if (child > 0) return child;
    try {
      ReplayBuffer buffer = ReplayBuffer::attach(storage);
      workers_[index].run(buffer, *rounds_, index);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "%s\n", error.what());
      rounds_->failed.fetch_add(1);
    }
    _exit(0);
  }

  std::vector<Worker> workers_;
  Rounds* rounds_;
  std::vector<pid_t> processes_;
  std::vector<std::jthread> threads_;
};

// Best of many short rounds, alternating between the group and the single worker.
void compare(Context& context, const std::string& name, const Mix& mix, ReplayBuffer& buffer, const Storage& storage) {
  const size_t batches = context.quick() ? 2 : 5;  // 4 x 5 x 12.8 MB per round
  Group group(together(mix, batches), buffer, storage);
  Group one(alone(mix, batches), buffer, storage);
  const std::vector<double> times = best_times(context, {[&] { group.round(); }, [&] { one.round(); }}, 2.0, 10);
  if (!group.end() || !one.end()) {
    context.wrong_answer(name, "a sampled row differs from every row that was added");
    return;
  }
  const double gigabytes = static_cast<double>(mix.workers() * batches * kReplayBatch * kReplayRowBytes) * 1e-9;
  context.add(name, gigabytes / times[0], "GB/s", "one", gigabytes / times[1], 1.0);
}

void fill(ReplayBuffer& buffer) {
  ReplayRows rows;
  rows.fill();
  const std::vector<std::byte*> from = rows.arrays();
  const std::vector<const std::byte*> in(from.begin(), from.end());
  for (uint64_t done = 0; done < buffer.capacity(); done += kReplayBatch) buffer.add(in, kReplayBatch);
}

// Every mix of "replay/KIND/...".
void compare_mixes(Context& context, const std::string& kind, const Storage& storage) {
  const auto name = [&](const Mix& mix) { return fmt::format("replay/{}/{}", kind, mix.name); };
  const auto wanted = [&](const Mix& mix) { return context.wants(name(mix)); };
  if (std::none_of(std::begin(kMixes), std::end(kMixes), wanted)) return;
  ReplayBuffer buffer = ReplayBuffer::create(replay_schema(), {.capacity = context.quick() ? 2560u : 20480u}, storage);
  fill(buffer);
  for (const Mix& mix : kMixes) {
    if (wanted(mix)) compare(context, name(mix), mix, buffer, storage);
  }
}

}  // namespace

void bench_replay_parallel(Context& context) {
  compare_mixes(context, "threads", Storage());
  const Storage storage = Storage::in_shared(fmt::format("bench-{}", getpid()));
  const auto remove = [](const Storage* name) { ReplayBuffer::remove(*name); };
  const std::unique_ptr<const Storage, decltype(remove)> remover(&storage, remove);
  compare_mixes(context, "processes", storage);
}

}  // namespace quern::bench
