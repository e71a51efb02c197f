// An observer of a pass's intermediate results, for diagnosing a step. Training has none.
#pragma once

#include <cstddef>
#include <cstdint>

namespace quern {

struct Pass;

// In this order, with what can be inspected in pass.work and pass.gradient at that point.
enum class Stage : uint8_t {
  kEmbedding,          // entry(0)
  kBlock,              // block(which), stream, wide and delta
  kFinalNorm,          // last, inner
  kLogits,             // logits, `which` rows; once per chunk
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

  // Called by the single thread that computes the pass.
  virtual void saw(const Pass& pass, Stage stage, size_t which) = 0;
};

}  // namespace quern
