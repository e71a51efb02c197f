// Memory layout of a model's parameters: one buffer, one tensor after another, with Hugging Face GPT-2 names and
// layouts. Weights, gradient and moments share the layout.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "nn/model_config.h"

namespace quern {

struct TensorInfo {
  std::string name;           // "h.0.attn.c_attn.weight"
  std::vector<size_t> shape;  // as Hugging Face stores it; linear weights are (in, out)
  size_t offset = 0;          // floats from the start of the buffer; 64-byte aligned
  size_t size = 0;            // floats
  bool decay = false;         // weight decay applies to matrices only
  size_t first_segment = 0;   // in ParameterLayout::segments()
  size_t segments = 0;
};

// A tensor, or a block of complete rows of a large matrix: the unit of ownership while gradients are added, and the
// unit of the gradient norm, the update and packing. Only the layout determines the cut, never the number of threads.
struct Segment {
  size_t offset, size;  // floats, as in TensorInfo
  size_t tensor;        // index of its tensor
  size_t row, rows;     // of a matrix; a vector is one row
  bool decay;
};
inline constexpr size_t kSegmentFloats = size_t{64} << 10;  // 256 KiB: the four arrays that AdamW touches fit in L2
inline constexpr size_t kSegmentRows = 48;                  // rows are a multiple of this: segments share no panel of
                                                            // packed weights

// Offsets of tensors that belong together.
struct LinearSlots {
  size_t weight, bias;
  size_t in, out;
  size_t tensor;  // index of the weight; the bias is next
};
struct NormSlots {
  size_t weight, bias;
  size_t tensor;  // likewise
};
struct BlockSlots {
  NormSlots norm1;
  LinearSlots qkv;      // (C, 3C)
  LinearSlots project;  // (C, C)
  NormSlots norm2;
  LinearSlots expand;    // (C, 4C)
  LinearSlots contract;  // (4C, C)
};

class ParameterLayout {
 public:
  explicit ParameterLayout(const ModelConfig& config);

  const std::vector<TensorInfo>& tensors() const { return tensors_; }
  const std::vector<Segment>& segments() const { return segments_; }
  size_t size() const { return size_; }                      // floats of a buffer, including alignment gaps
  size_t count() const { return count_; }                    // number of parameters
  size_t token_table() const { return token_table_; }        // (V, C), tied to the output projection; tensor 0
  size_t position_table() const { return position_table_; }  // (T, C); tensor 1
  const std::vector<BlockSlots>& blocks() const { return blocks_; }
  NormSlots final_norm() const { return final_norm_; }

 private:
  size_t add(std::string name, std::vector<size_t> shape);
  LinearSlots add_linear(const std::string& name, size_t in, size_t out);
  NormSlots add_norm(const std::string& name, size_t width);

  void cut(size_t tensor);

  std::vector<TensorInfo> tensors_;
  std::vector<Segment> segments_;
  size_t size_ = 0, count_ = 0;
  size_t token_table_, position_table_;
  std::vector<BlockSlots> blocks_;
  NormSlots final_norm_;
};

// Fills `weights` (layout.size()) with GPT-2's initialization: normal with standard deviation 0.02, projections back
// into the residual stream with 0.02 / sqrt(2 layers), norms 1 and biases 0. Each tensor draws from its own stream, so
// the values depend only on the seed and the tensor.
void initialise(const ParameterLayout& layout, size_t layers, uint64_t seed, std::span<float> weights);

}  // namespace quern
