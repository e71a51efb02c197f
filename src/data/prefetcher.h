// Batches ahead of those who need them, read by a thread of its own.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <thread>
#include <vector>

#include "core/bounded_queue.h"
#include "data/batch_reader.h"

namespace quern::data {

struct PrefetchOptions {
  uint32_t context = 0;
  uint32_t sequences_per_step = 0;
  uint32_t at_once = 0;  // sequences of a batch; the last of a step may have fewer
  uint32_t first_step = 0;
  StreamPosition position = {};  // of that step, for a source that needs it
};

class Prefetcher {
 public:
  static constexpr size_t kAhead = 128;  // batches at most

  // `source` must outlive the prefetcher.
  Prefetcher(const BatchSource& source, const PrefetchOptions& options);
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;
  ~Prefetcher();

  // The next batch, in order of step and first; waits for it. Throws what the source threw when it was to read this
  // batch; null after stop(). Lock-free and without allocation, as is give_back().
  Batch* next();
  // To be filled again. Any thread.
  void give_back(Batch* batch) noexcept { free_.push(batch); }
  // Ends every wait, now and later: for when batches will not come back. Any thread.
  void stop() noexcept;

 private:
  void produce();
  bool produce_step(BatchReader& reader, uint32_t step);

  const BatchSource& source_;
  PrefetchOptions options_;
  std::vector<std::unique_ptr<Batch>> batches_;
  BoundedQueue<Batch*> free_, ready_;
  std::exception_ptr failure_;
  std::atomic<bool> failed_{false};  // failure_ is set
  std::thread producer_;
};

}  // namespace quern::data
