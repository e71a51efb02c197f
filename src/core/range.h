// The half-open index range [begin, end).
#pragma once

#include <cstddef>

namespace quern {

struct Range {
  size_t begin = 0, end = 0;
  size_t size() const { return end - begin; }
};

}  // namespace quern
