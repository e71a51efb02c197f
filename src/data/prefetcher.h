// Reads batches ahead of time in a background thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <thread>
#include <vector>

#include "core/bounded_queue.h"
#include "core/range.h"
#include "data/batch_reader.h"

namespace quern::data {

struct PrefetchOptions {
  uint32_t targets_per_sequence = 0;
  uint32_t sequences_per_step = 0;
  // Of every step: the sequences of each, in order. There may be others between them; the last batch's `after` is the
  // end of the step.
  std::vector<Range> batches = {};
  uint32_t first_step = 0;
  StreamPosition position = {};  // of that step, for sources that need it
};

class Prefetcher {
 public:
  static constexpr size_t kAhead = 128;  // maximum number of batches

  // `source` must outlive the prefetcher.
  Prefetcher(const BatchSource& source, const PrefetchOptions& options);
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;
  ~Prefetcher();

  // Waits for the next batch, in order of step and first. Rethrows an exception of the source for this batch. Returns
  // null after stop(). Lock-free and does not allocate, like give_back().
  Batch* next();
  // Returns a batch for reuse. Thread-safe.
  void give_back(Batch* batch) noexcept { free_.push(batch); }
  // Ends all current and future waits, for when batches will not be returned. Thread-safe.
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
