#include "nn/model.h"

#include <algorithm>
#include <utility>

namespace quern::nn {
Model::Model(Declaration declaration, Packing packing)
    : declaration_(std::move(declaration)),
      weights_(declaration_.parameters, packing, declaration_.activations.storage) {}

void Model::initialise(uint64_t seed) {
  nn::initialise(declaration_.parameters, seed, weights_.values());
  weights_.repack();
}

void Model::losses_of_sequence(const Workspace& work, size_t sequence, size_t T, std::span<double> parts) const {
  if (parts.size() == 1) {
    parts[0] = work.loss_of_sequence(sequence, T);
  } else {
    std::copy_n(work.losses.data() + sequence * T, parts.size(), parts.begin());
  }
}

double sum_of_losses(const MicroBatch& batch, const Workspace& work) {
  double sum = 0;
  for (size_t s = 0; s < batch.sequences; ++s) sum += work.loss_of_sequence(s, batch.T);
  return sum;
}

}  // namespace quern::nn
