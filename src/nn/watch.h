// An observer of a pass's intermediate results, for diagnosing a step. Training has none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "kernels/types.h"

namespace quern::nn {

class Watch {
 public:
  Watch() = default;
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;
  virtual ~Watch() = default;

  // Called for every tensor in the order of computation, by the single thread that computes the pass. `name` is that of
  // the layer that computed it ("h.2.mlp.c_fc"), or "gradient of" a layer or parameter. `sequence` is the first one of
  // the micro-batch, counted over the step.
  virtual void saw(std::string_view name, const kernels::SavedTensor& values, size_t count, uint32_t sequence) = 0;
};

}  // namespace quern::nn
