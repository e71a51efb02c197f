// The tags of messages: one place, so that no two uses share one. Small numbers, because a transport may allow few
// (Communicator::max_tag).
#pragma once

#include <cstdint>

namespace quern::dist {

enum Tag : uint32_t {
  kCoresTag,
  kFlagsTag,  // agreeing, and texts of all ranks
  kSizesTag,
  kTextsTag,
  kStatesTag,      // of an optimizer, to rank 0
  kEvaluationTag,  // losses
  kNumbersTag,     // data.broadcast
  kTokensTag,
  kTargetsTag,
  kStepTags,  // the first of a step's: two for each segment, and some more
};

}  // namespace quern::dist
