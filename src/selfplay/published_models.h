// The newest versions of the weights, for threads that read them without a lock.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/cache_line.h"
#include "selfplay/model.h"

namespace quern::selfplay {

struct VersionedModel {
  uint64_t version = 0;
  std::shared_ptr<const Model> model;  // null: there is none
};

// Versions are numbered one after another. The newest `versions` of them are kept here; older ones live as long as
// somebody has them. std::atomic<std::shared_ptr> would be a lock here (is_lock_free() is false with g++ 12), so a
// version is in a cell with one word:
//
//   word == (version + 1) << 16 | n    holds this version; n threads are copying the pointer
//   word == 0                          empty, or the publisher is changing it
//
// A reader increments the count of a word with the version it wants by compare-and-swap, copies the pointer and
// decrements it. The publisher takes a cell by changing a word with count 0 to 0, so no reader copies a pointer that
// changes. Readers never wait for the publisher. It waits for readers that are copying the oldest version, for the time
// of one increment of a reference count.
class PublishedModels {
 public:
  // Keeps at least this many versions.
  explicit PublishedModels(size_t versions) : cells_(versions + 1) {}

  // Publishes a version. The first may have any number, each further one has the next. One thread at a time.
  void publish(uint64_t version, std::shared_ptr<const Model> model);

  // One more than the newest version; 0 before the first.
  uint64_t end() const noexcept { return end_.load(std::memory_order_acquire); }

  VersionedModel newest() const noexcept;
  // A null model if the version was not published yet, or is no longer kept.
  VersionedModel find(uint64_t version) const noexcept;

 private:
  static constexpr int kCountBits = 16;  // more threads than a machine has
  struct alignas(kCacheLine) Cell {
    std::atomic<uint64_t> word{0};
    std::shared_ptr<const Model> model;
  };

  mutable std::vector<Cell> cells_;  // version v is in cell v % size
  alignas(kCacheLine) std::atomic<uint64_t> end_{0};
};

}  // namespace quern::selfplay
