// Muon for the matrices between hidden layers: momentum whose singular values are made equal. AdamW for the rest.
#pragma once

#include <cstddef>
#include <vector>

#include "core/aligned_buffer.h"
#include "kernels/adamw.h"
#include "kernels/muon.h"
#include "optim/optimizer.h"
#include "optim/orthogonalize.h"

namespace quern {

// The update of a matrix W (out, in) with momentum M:
//   M = mu M + (1 - mu) G,  O = orthogonalize(mu M + (1 - mu) G),
//   W -= rate * (sqrt(max(1, out / in)) O + weight_decay W).
// O needs the entire matrix, so a unit is a matrix, computed by one thread. Matrices that are stored side by side, such
// as those of queries, keys and values, are orthogonalized separately.
class Muon final : public Optimizer {
 public:
  static std::vector<StateSpec> states_of();
  // Whether a parameter is updated by Muon, not by AdamW.
  static bool covers(const nn::Parameter& parameter) { return parameter.hidden && parameter.trainable; }

  // `threads` can call update() concurrently. Error if the model has no matrix between hidden layers.
  Muon(const nn::ParameterTable& table, const OptimizerOptions& options, size_t threads);

  // Bytes that a thread needs besides the states.
  static size_t bytes_per_thread(const nn::ParameterTable& table);

 private:
  // Memory of a thread: the matrix being orthogonalized, a buffer of the same size, and the rest.
  struct Scratch {
    AlignedBuffer<float> x, y;
    Orthogonalizer orthogonalizer;
  };

  void prepare(const Update& update) override;
  void begin_unit(const UpdateUnit& unit, size_t thread, const float* gradient) override;
  void apply(const UpdatePiece& piece) override;
  UnitWork work(const UpdateUnit& unit) const override;

  std::vector<Scratch> scratch_;  // per thread
  kernels::AdamW step_;
  kernels::Momentum momentum_;
  float matrix_rate_ = 0;
};

}  // namespace quern
