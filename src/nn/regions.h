// The operations of a model as they appear in a profile, and how their work is counted.
#pragma once

#include <optional>

#include "nn/pass.h"
#include "quern/profile.h"

namespace quern::nn {

// Forward runs once for the loss, and again where backward needs activations that were not saved.
struct ForwardRegions {
  Region once, once_more;
  const Region& of(bool again) const { return again ? once_more : once; }
};
struct NormRegions {
  ForwardRegions forward;
  Region backward;
};
struct LinearRegions {
  ForwardRegions forward;
  Region input_gradient, weight_gradient;
};

inline const Region kEmbeddingForward("embedding forward", Unit::kBytes);
inline const Region kEmbeddingBackward("embedding backward", Unit::kBytes);
inline const Region kDropout("dropout", Unit::kBytes);
inline const Region kWiden("widening", Unit::kBytes);  // of 16-bit attention activations
inline const NormRegions kNorm1{{Region("norm1 forward", Unit::kBytes), Region("norm1 forward again", Unit::kBytes)},
                                Region("norm1 backward", Unit::kBytes)};
inline const NormRegions kNorm2{{Region("norm2 forward", Unit::kBytes), Region("norm2 forward again", Unit::kBytes)},
                                Region("norm2 backward", Unit::kBytes)};
inline const NormRegions kFinalNorm{
    {Region("final norm forward", Unit::kBytes), Region("final norm forward again", Unit::kBytes)},
    Region("final norm backward", Unit::kBytes)};
inline const LinearRegions kQkv{{Region("qkv forward", Unit::kFlops), Region("qkv forward again", Unit::kFlops)},
                                Region("qkv input gradient", Unit::kFlops),
                                Region("qkv weight gradient", Unit::kFlops)};
inline const ForwardRegions kQueriesKeysForward{Region("queries, keys forward", Unit::kBytes),
                                                Region("queries, keys forward again", Unit::kBytes)};
inline const Region kQueriesKeysBackward("queries, keys backward", Unit::kBytes);  // QK-norm and rotation
inline const ForwardRegions kAttentionForward{Region("attention forward", Unit::kFlops),
                                              Region("attention forward again", Unit::kFlops)};
inline const Region kAttentionBackward("attention backward", Unit::kFlops);
inline const LinearRegions kProject{
    {Region("project forward", Unit::kFlops), Region("project forward again", Unit::kFlops)},
    Region("project input gradient", Unit::kFlops),
    Region("project weight gradient", Unit::kFlops)};
inline const LinearRegions kExpand{
    {Region("expand, activation forward", Unit::kFlops), Region("expand, activation forward again", Unit::kFlops)},
    Region("expand input gradient", Unit::kFlops),
    Region("expand weight gradient", Unit::kFlops)};
inline const LinearRegions kGate{{Region("gate forward", Unit::kFlops), Region("gate forward again", Unit::kFlops)},
                                 Region("gate input gradient", Unit::kFlops),
                                 Region("gate weight gradient", Unit::kFlops)};
inline const ForwardRegions kGateForward{Region("activation forward", Unit::kBytes),
                                         Region("activation forward again", Unit::kBytes)};
inline const Region kActivationBackward("activation backward", Unit::kBytes);
inline const LinearRegions kContract{
    {Region("contract forward", Unit::kFlops), Region("contract forward again", Unit::kFlops)},
    Region("contract input gradient", Unit::kFlops),
    Region("contract weight gradient", Unit::kFlops)};
inline const LinearRegions kOutput{
    {Region("output forward", Unit::kFlops), Region("output forward again", Unit::kFlops)},
    Region("output input gradient", Unit::kFlops),
    Region("output weight gradient", Unit::kFlops)};
inline const ForwardRegions kAdapterForward{Region("adapter forward", Unit::kFlops),
                                            Region("adapter forward again", Unit::kFlops)};
inline const Region kAdapterInputGradient("adapter input gradient", Unit::kFlops);
inline const Region kAdapterWeightGradient("adapter weight gradient", Unit::kFlops);
inline const Region kPlanes("planes to rows", Unit::kBytes);
inline const LinearRegions kBoardInput{
    {Region("board input forward", Unit::kFlops), Region("board input forward again", Unit::kFlops)},
    Region("board input gradient", Unit::kFlops),
    Region("board input weight gradient", Unit::kFlops)};
inline const LinearRegions kPolicy{
    {Region("policy forward", Unit::kFlops), Region("policy forward again", Unit::kFlops)},
    Region("policy input gradient", Unit::kFlops),
    Region("policy weight gradient", Unit::kFlops)};
inline const LinearRegions kValue{{Region("value forward", Unit::kFlops), Region("value forward again", Unit::kFlops)},
                                  Region("value input gradient", Unit::kFlops),
                                  Region("value weight gradient", Unit::kFlops)};
inline const Region kPooling("pooling", Unit::kBytes);  // squares of a board, and the gradient of it
inline const Region kCrossEntropy("cross entropy", Unit::kBytes);
inline const Region kPackOperand("packing operands", Unit::kBytes);  // of weight gradients, once for several products
inline const Region kPackWeights("packing weights", Unit::kBytes);
inline const Region kLanes("adding lanes", Unit::kBytes);
inline const Region kJoin("join", Unit::kBytes);  // of the token table's two gradients, including norms

// Work is the minimum an operation must do: the multiplications and additions of a product, half of them for causal
// attention, and for an elementwise operation the bytes read and written if nothing stays in a cache. This member's
// part.
inline double product_flops(const Pass& pass, size_t rows, size_t in, size_t out) {
  return 2.0 * static_cast<double>(rows * in) * static_cast<double>(out) / static_cast<double>(pass.member.size);
}

// Forward: two products. Backward: their four gradients, and the recomputed scores. `width` is twice that of the heads
// for bidirectional attention.
inline double attention_flops(const Pass& pass, size_t width, double products) {
  const double T = static_cast<double>(pass.batch.T), rows = static_cast<double>(pass.rows());
  return products * T * rows * static_cast<double>(width) / static_cast<double>(pass.member.size);
}

// `bytes` bytes for each of (rows, width) numbers.
inline double element_bytes(const Pass& pass, size_t width, size_t bytes) {
  return static_cast<double>(pass.rows() * width * bytes) / static_cast<double>(pass.member.size);
}

inline int32_t layer_tag(std::optional<size_t> block) { return block ? static_cast<int32_t>(*block) : Timed::kNoLayer; }

}  // namespace quern::nn
