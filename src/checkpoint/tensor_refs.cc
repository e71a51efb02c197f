#include "checkpoint/tensor_refs.h"

namespace quern::checkpoint {

std::vector<TensorRef> tensor_refs(const ParameterLayout& layout, std::span<float> values) {
  std::vector<TensorRef> refs;
  for (const TensorInfo& tensor : layout.tensors()) {
    refs.push_back({tensor.name, tensor.shape, values.subspan(tensor.offset, tensor.size)});
  }
  return refs;
}

}  // namespace quern::checkpoint
