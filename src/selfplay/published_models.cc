#include "selfplay/published_models.h"

#include <cassert>
#include <utility>

namespace quern::selfplay {

void PublishedModels::publish(uint64_t version, std::shared_ptr<const Model> model) {
  assert(model != nullptr && (end() == 0 || end() == version));
  Cell& cell = cells_[version % cells_.size()];
  uint64_t word = cell.word.load(std::memory_order_relaxed);
  for (;;) {
    word = word >> kCountBits << kCountBits;  // what it is without readers
    // The acquire pairs with the release of the readers that left.
    if (cell.word.compare_exchange_weak(word, 0, std::memory_order_acquire, std::memory_order_relaxed)) break;
    spin_pause();
  }
  const std::shared_ptr<const Model> old = std::exchange(cell.model, std::move(model));
  cell.word.store((version + 1) << kCountBits, std::memory_order_release);  // pairs with the acquire in find()
  end_.store(version + 1, std::memory_order_release);                       // pairs with the acquire in end()
}

VersionedModel PublishedModels::find(uint64_t version) const noexcept {
  Cell& cell = cells_[version % cells_.size()];
  uint64_t word = cell.word.load(std::memory_order_relaxed);
  do {
    if (word >> kCountBits != version + 1) return {version, nullptr};
  } while (!cell.word.compare_exchange_weak(word, word + 1, std::memory_order_acquire, std::memory_order_relaxed));
  VersionedModel found{version, cell.model};
  cell.word.fetch_sub(1, std::memory_order_release);  // pairs with the acquire in publish()
  return found;
}

VersionedModel PublishedModels::newest() const noexcept {
  for (uint64_t end = this->end(); end != 0; end = this->end()) {
    VersionedModel found = find(end - 1);
    if (found.model != nullptr) return found;  // else newer ones have replaced it meanwhile
  }
  return {};
}

}  // namespace quern::selfplay
