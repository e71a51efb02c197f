#include <concurrentqueue/concurrentqueue.h>
#include <tbb/concurrent_queue.h>

#include <deque>
#include <mutex>

#include "benchmarks/peers/parts.h"

namespace quern::bench {
namespace {

class MutexQueue {
 public:
  explicit MutexQueue(size_t capacity) : capacity_(capacity) {}
  bool try_push(uint64_t item) {
    const std::scoped_lock lock(mutex_);
    if (items_.size() == capacity_) return false;
    items_.push_back(item);
    return true;
  }
  bool try_pop(uint64_t& item) {
    const std::scoped_lock lock(mutex_);
    if (items_.empty()) return false;
    item = items_.front();
    items_.pop_front();
    return true;
  }

 private:
  size_t capacity_;
  std::mutex mutex_;
  std::deque<uint64_t> items_;
};

class TbbQueue {
 public:
  explicit TbbQueue(size_t capacity) { queue_.set_capacity(static_cast<ptrdiff_t>(capacity)); }
  bool try_push(uint64_t item) { return queue_.try_push(item); }
  bool try_pop(uint64_t& item) { return queue_.try_pop(item); }

 private:
  tbb::concurrent_bounded_queue<uint64_t> queue_;
};

// Unbounded by nature; bounded here to the memory allocated at the start, so that pushes do not allocate. That is more
// than the capacity (1024 items for 256 with one producer), which can only help it. It preserves the order of each
// producer.
class MoodycamelQueue {
 public:
  explicit MoodycamelQueue(size_t capacity) : queue_(capacity, 0, kMaxProducers) {}
  bool try_push(uint64_t item) { return queue_.try_enqueue(item); }
  bool try_pop(uint64_t& item) { return queue_.try_dequeue(item); }

 private:
  static constexpr size_t kMaxProducers = 16;
  moodycamel::ConcurrentQueue<uint64_t> queue_;
};

template <typename Queue>
QueuePeer peer(const char* name) {
  return {name,                                                          //
          [](size_t capacity) -> void* { return new Queue(capacity); },  //
          [](void* queue) { delete static_cast<Queue*>(queue); },        //
          [](void* queue, uint64_t item) { return static_cast<Queue*>(queue)->try_push(item); },
          [](void* queue, uint64_t* item) { return static_cast<Queue*>(queue)->try_pop(*item); }};
}

}  // namespace

QueuePeer mutex_queue() { return peer<MutexQueue>("mutex"); }
QueuePeer tbb_queue() { return peer<TbbQueue>("tbb"); }
QueuePeer moodycamel_queue() { return peer<MoodycamelQueue>("moodycamel"); }

}  // namespace quern::bench
