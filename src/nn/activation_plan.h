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
  double products = 0;                // in matrix products inside blocks
  double last_products = 0;           // those of them that come last in a block: not repeated when it is recomputed
  double output_products = 0;         // in products outside blocks
  double attention_width = 0;         // summed over blocks, twice for bidirectional ones; T positions cost T times this
  double frozen_products = 0;         // those inside blocks whose matrix is not trained: they have no weight gradient
  double frozen_output_products = 0;  // the same outside blocks
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

  size_t adapter_rank = 0;  // of low-rank adapters
  size_t dropped = 0;       // width of the widest input of an adapter with dropout

  void need_wide(size_t columns) { wide = std::max(wide, columns); }
  void need_adapter(size_t rank, size_t dropped_input) {
    adapter_rank = std::max(adapter_rank, rank);
    dropped = std::max(dropped, dropped_input);
  }

  // Useful work per position of a training step with sequences of T positions: forward, with multiply-adds counted as
  // two, plus twice that for backward, or once where there is no weight gradient. Of causal attention, only the half
  // that is computed counts, and of the output only the share of positions whose targets count.
  double training_flops(size_t T, double counted = 1.0) const {
    return 6.0 * (cost.products + counted * cost.output_products) - 2.0 * cost.frozen_products -
           2.0 * counted * cost.frozen_output_products + 6.0 * cost.attention_width * static_cast<double>(T);
  }
};

}  // namespace quern::nn
