#include "nn/model.h"

#include <utility>

namespace quern::nn {
Model::Model(Declaration declaration, Packing packing)
    : declaration_(std::move(declaration)),
      weights_(declaration_.parameters, packing, declaration_.activations.storage) {}

void Model::initialise(uint64_t seed) {
  nn::initialise(declaration_.parameters, seed, weights_.values());
  weights_.repack();
}

double sum_of_losses(const MicroBatch& batch, const Workspace& work) {
  double sum = 0;
  for (size_t s = 0; s < batch.sequences; ++s) sum += work.loss_of_sequence(s, batch.T);
  return sum;
}

}  // namespace quern::nn
