#include "core/arena.h"

#include <algorithm>
#include <cassert>

#include "core/error.h"

namespace quern {

void Arena::allocate(Fill fill) {
  assert(planning_);
  buffer_ = AlignedBuffer<std::byte>(planned_, fill);
  planning_ = false;
  used_ = peak_ = 0;
}

std::byte* Arena::advance(size_t bytes) {
  // Rounded up so that the next one is aligned too. checked_bytes leaves room in size_t for both additions.
  const size_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  const size_t begin = used_;
  if (!planning_ && rounded > planned_ - begin) {
    throw Error("[arena] {} bytes do not fit: {} of {} planned bytes are in use", bytes, begin, planned_);
  }
  used_ = checked_bytes(begin + rounded, 1);
  if (planning_) {
    planned_ = std::max(planned_, used_);
    return nullptr;
  }
  peak_ = std::max(peak_, used_);
  return buffer_.data() + begin;
}

}  // namespace quern
