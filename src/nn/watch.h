// Someone who looks at what a pass has computed, as it goes. For the diagnosis of a step; training has none.
#pragma once

#include <cstddef>
#include <cstdint>

namespace quern {

struct Pass;

// In this order, and what can then be looked at in pass.work and pass.gradient.
enum class Stage : uint8_t {
  kEmbedding,          // entry(0)
  kBlock,              // block(which), stream, wide and delta
  kFinalNorm,          // last, inner
  kLogits,             // logits, `which` rows of them; once for each chunk
  kOutputGradient,     // losses, dinner; the token table's gradient
  kFinalNormGradient,  // dx; the norm's gradient
  kBlockGradient,      // dx; the gradient of block `which`
  kInputGradient,      // dx; the position table's gradient
};

class Watch {
 public:
  Watch() = default;
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;
  virtual ~Watch() = default;

  // Called by the one thread that computes the pass.
  virtual void saw(const Pass& pass, Stage stage, size_t which) = 0;
};

}  // namespace quern
