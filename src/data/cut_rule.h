// Where text can be cut so that the parts can be tokenised separately.
#pragma once

#include <cstdint>

namespace quern::data {

enum class CutRule : uint8_t {
  kBeforeWhiteSpace,  // between a visible character and a space or line break
  kBeforeSpace,       // between a visible character and a space
};

}  // namespace quern::data
