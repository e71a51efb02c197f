// What the layers of a model need of a workspace, declared when the model is built. Sizes are per row, that is, per
// position of a sequence.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/attention.h"
#include "kernels/types.h"

namespace quern::nn {

// A tensor that a layer saves for backward, in the set of its block or of the model's head.
enum class SlotId : uint32_t {};

class SavedPlan {
 public:
  struct Slot {
    size_t width;         // numbers per row
    kernels::DType type;  // fp32, or the model's storage format
  };
  SlotId add(size_t width, kernels::DType type) {
    slots_.push_back({width, type});
    return static_cast<SlotId>(slots_.size() - 1);
  }
  const std::vector<Slot>& slots() const { return slots_; }

 private:
  std::vector<Slot> slots_;
};

// Multiply-adds per row of forward, for estimates of time and utilisation.
struct ForwardCost {
  double products = 0;         // in matrix products inside blocks
  double last_products = 0;    // those of them that come last in a block: not repeated when it is recomputed
  double output_products = 0;  // in products outside blocks
  double attention_width = 0;  // summed over blocks; causal attention over T positions costs T times this
};

struct ActivationPlan {
  explicit ActivationPlan(kernels::DType format = kernels::DType::kF32) : storage(format) {}

  kernels::DType storage;                  // format of what is saved for backward
  size_t blocks = 0;                       // whose activations may be recomputed
  size_t context = 0;                      // maximum number of rows per sequence
  size_t width = 0;                        // of the residual stream
  size_t wide = 0;                         // of the widest temporary inside a block
  size_t outputs = 0;                      // columns of the output, such as logits
  kernels::AttentionShape attention = {};  // of any block, without T; heads is 0 if there is none
  SavedPlan block;                         // of each block
  SavedPlan head;                          // outside blocks
  ForwardCost cost;

  void need_wide(size_t columns) { wide = std::max(wide, columns); }

  // Useful work per position of a training step with sequences of T positions: forward, with multiply-adds counted as
  // two, plus twice that for backward. Of causal attention, only the half that is computed counts.
  double training_flops(size_t T) const {
    return 6.0 * (cost.products + cost.output_products) + 6.0 * cost.attention_width * static_cast<double>(T);
  }
};

}  // namespace quern::nn
