#include "kernels/output_loss.h"

#include <algorithm>
#include <cassert>

#include "kernels/cross_entropy.h"

namespace quern::kernels {

size_t output_loss_scratch(size_t chunk, size_t V) noexcept { return chunk * V + kGemmScratch; }

void output_loss(const OutputLoss& args, std::span<float> scratch) noexcept {
  assert(args.chunk > 0 && scratch.size() >= output_loss_scratch(args.chunk, args.V));
  const std::span<float> work = scratch.first(kGemmScratch);
  float* logits = scratch.data() + kGemmScratch;
  for (size_t row = 0; row < args.rows; row += args.chunk) {
    const size_t n = std::min(args.chunk, args.rows - row);
    const float* x = args.x + row * args.C;
    gemm({.layout = Layout::kNT,
          .M = n,
          .N = args.V,
          .K = args.C,
          .a = {x, args.C},
          .b = args.weight,
          .packed_b = args.packed_weight,
          .c = logits,
          .c_stride = args.V},
         work);
    cross_entropy(logits, args.V, args.targets + row, n, args.V, args.scale, args.losses + row, args.dx != nullptr);
    if (args.dx == nullptr) continue;
    gemm({.layout = Layout::kNN,
          .M = n,
          .N = args.C,
          .K = args.V,
          .a = {logits, args.V},
          .b = args.weight,
          .packed_b = args.packed_weight_transposed,
          .c = args.dx + row * args.C,
          .c_stride = args.C},
         work);
    if (args.dweight == nullptr) continue;
    gemm({.layout = Layout::kTN,
          .M = args.V,
          .N = args.C,
          .K = n,
          .a = {logits, args.V},
          .b = {x, args.C},
          .c = args.dweight,
          .c_stride = args.C,
          .add = true},
         work);
  }
}

}  // namespace quern::kernels
