#include "learn/network.h"

#include <algorithm>
#include <cstring>

#include "checkpoint/tensor_refs.h"
#include "core/error.h"
#include "selfplay/network_evaluator.h"

namespace quern::learn {

Network::Network(const nn::BoardModel& trained) : board_(trained.config(), nn::Packing::for_inference()) {
  std::ranges::copy(trained.weights().values(), board_.weights().values().begin());
  board_.weights().repack();
}

Network::Network(const nn::BoardConfig& config, const safetensors::File& weights, const std::filesystem::path& path)
    : board_(config, nn::Packing::for_inference()) {
  const size_t wanted = board_.parameters().all().size();
  if (weights.tensors().size() != wanted) {
    throw Error("[selfplay] {}: expected the {} tensors of this network, found {}", path.string(), wanted,
                weights.tensors().size());
  }
  for (const checkpoint::TensorRef& ref : checkpoint::tensor_refs(board_.parameters(), board_.weights().values())) {
    const safetensors::Tensor* found = weights.find(ref.name);
    if (found == nullptr || found->shape != ref.shape || found->dtype != safetensors::Dtype::kF32) {
      throw Error("[selfplay] {}: expected tensor {} of this network, found {}", path.string(), ref.name,
                  found == nullptr ? "none" : "one of another shape or type");
    }
    std::memcpy(ref.values.data(), found->bytes.data(), found->bytes.size());
  }
  weights.check_intact();
  board_.weights().repack();
}

std::unique_ptr<selfplay::Evaluator> Network::make_evaluator(size_t) const {
  return std::make_unique<selfplay::NetworkEvaluator>(board_);
}

std::vector<safetensors::Tensor> Network::tensors() const {
  std::vector<safetensors::Tensor> tensors;
  for (const nn::Parameter& parameter : board_.parameters().all()) {
    const auto values = board_.weights().values().subspan(parameter.offset, parameter.size);
    tensors.push_back({parameter.name, safetensors::Dtype::kF32, parameter.shape, std::as_bytes(values)});
  }
  return tensors;
}

}  // namespace quern::learn
