// The bounded queue against other queues: items per second with as many producers as consumers, and the cost of an
// uncontended push and pop.
#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "benchmarks/workloads.h"
#include "core/bounded_queue.h"
#include "core/measuring.h"

namespace quern::bench {
namespace {

constexpr size_t kCapacity = 256;  // of the work queue

using Ours = BoundedQueue<uint64_t>;

// Quern's queue behind the same kind of pointers as the peers.
const QueuePeer kOurs = {
    .name = "quern",
    .create = [](size_t capacity) -> void* { return new Ours(capacity); },
    .destroy = [](void* queue) { delete static_cast<Ours*>(queue); },
    .try_push = [](void* queue, uint64_t item) { return static_cast<Ours*>(queue)->try_push(item); },
    .try_pop =
        [](void* queue, uint64_t* item) {
          const std::optional<uint64_t> found = static_cast<Ours*>(queue)->try_pop();
          if (found) *item = *found;
          return found.has_value();
        },
};

std::vector<const QueuePeer*> contenders(const Context& context) {
  std::vector<const QueuePeer*> all = {&kOurs};
  const Peers* peers = context.peers();
  for (size_t i = 0; peers != nullptr && i < peers->queue_count; ++i) all.push_back(&peers->queues[i]);
  return all;
}

// Retries until it succeeds, in the same way for every queue: a few pauses, because the other side is often about to
// act, then yields the core, because there may be more threads than cores.
template <typename Try>
void until(Try attempt) {
  constexpr int kTriesBeforeYield = 4;
  for (int failures = 0; !attempt(); ++failures) {
    if (failures < kTriesBeforeYield) {
      spin_pause();
    } else {
      std::this_thread::yield();
    }
  }
}

// The sum of the items popped by `consumers` threads while as many producers together pushed 1 ... items.
uint64_t pass_through(const QueuePeer& peer, size_t pairs, uint64_t items) {
  void* queue = peer.create(kCapacity);
  std::atomic<uint64_t> sum{0};
  const uint64_t share = items / pairs;
  run_on_threads(2 * pairs, [&](size_t thread) {
    if (thread < pairs) {
      for (uint64_t i = 1; i <= share; ++i) until([&] { return peer.try_push(queue, thread * share + i); });
      return;
    }
    uint64_t mine = 0;
    for (uint64_t i = 0; i < share; ++i) {
      uint64_t item = 0;
      until([&] { return peer.try_pop(queue, &item); });
      mine += item;
    }
    sum.fetch_add(mine, std::memory_order_relaxed);
  });
  peer.destroy(queue);
  return sum.load();
}

// The sum of 1 ... items after this thread pushed and popped each.
uint64_t push_and_pop(const QueuePeer& peer, void* queue, uint64_t items) {
  uint64_t sum = 0;
  for (uint64_t i = 1; i <= items; ++i) {
    uint64_t item = 0;
    if (!peer.try_push(queue, i) || !peer.try_pop(queue, &item)) return 0;
    sum += item;
  }
  return sum;
}

// Whether every queue delivered each of 1 ... items once, as far as the sum can tell.
bool check(Context& context, const std::string& name, const std::vector<const QueuePeer*>& queues,
           const std::vector<uint64_t>& sums, uint64_t items) {
  const uint64_t expected = items * (items + 1) / 2;
  for (size_t i = 0; i < queues.size(); ++i) {
    if (sums[i] == expected) continue;
    context.wrong_answer(name, std::string(queues[i]->name) + ": sum of the items: expected " +
                                   std::to_string(expected) + ", found " + std::to_string(sums[i]));
    return false;
  }
  return true;
}

// Adds Quern's items per microsecond against each peer's; only the mutex can be a bar.
void report(Context& context, const std::string& name, const std::vector<const QueuePeer*>& queues,
            const std::vector<double>& seconds, uint64_t items, bool bars) {
  const auto rate = [&](size_t i) { return static_cast<double>(items) / seconds[i] * 1e-6; };
  for (size_t i = 1; i < queues.size(); ++i) {
    const bool bar = bars && std::string(queues[i]->name) == "mutex";
    context.add(name, rate(0), "Mop/s", queues[i]->name, rate(i), bar ? std::optional(1.0) : std::nullopt);
  }
}

void bench_pairs(Context& context, size_t pairs) {
  const std::string name = "queue/" + std::to_string(pairs) + "x" + std::to_string(pairs);
  // A multiple of 4. Short, about 5 ms, compared to 0.2 ms to start the threads: on a busy machine some of many short
  // runs are undisturbed, but a long one never is.
  const uint64_t items = context.quick() ? 8000 : 100000;
  const std::vector<const QueuePeer*> queues = contenders(context);
  std::vector<uint64_t> sums(queues.size());
  std::vector<std::function<void()>> runs;
  for (size_t i = 0; i < queues.size(); ++i) {
    runs.emplace_back([&, i] { sums[i] = pass_through(*queues[i], pairs, items); });
  }
  const std::vector<double> seconds = best_times(context, runs, 3.0, 20);
  if (!check(context, name, queues, sums, items)) return;
  report(context, name, queues, seconds, items, true);
  if (queues.size() == 1) context.add(name, static_cast<double>(items) / seconds[0] * 1e-6, "Mop/s", "none", 0);
}

void bench_uncontended(Context& context) {
  const std::string name = "queue/uncontended";
  const uint64_t items = context.quick() ? 1000 : 100000;
  const std::vector<const QueuePeer*> queues = contenders(context);
  std::vector<uint64_t> sums(queues.size());
  std::vector<void*> made;
  std::vector<std::function<void()>> runs;
  for (size_t i = 0; i < queues.size(); ++i) {
    made.push_back(queues[i]->create(kCapacity));
    runs.emplace_back([&, i] { sums[i] = push_and_pop(*queues[i], made[i], items); });
  }
  const std::vector<double> seconds = best_times(context, runs);
  for (size_t i = 0; i < queues.size(); ++i) queues[i]->destroy(made[i]);
  if (!check(context, name, queues, sums, items)) return;
  context.add(name, static_cast<double>(items) / seconds[0] * 1e-6, "Mop/s", "25 ns", 1e3 / 25, 1.0);
  report(context, name, queues, seconds, items, false);
}

}  // namespace

void bench_queue(Context& context) {
  for (const size_t pairs : {1, 2, 4}) bench_pairs(context, pairs);
  bench_uncontended(context);  // last: glibc's mutex skips its atomics until the process has started a thread
}

}  // namespace quern::bench
