#include "kernels/embedding.h"

#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/embedding.cc"
#include "hwy/foreach_target.h"

#include "kernels/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace quern::kernels::HWY_NAMESPACE {
namespace {

HWY_INLINE void AddRows(const float* HWY_RESTRICT a, const float* HWY_RESTRICT b, float* HWY_RESTRICT out, size_t C) {
  size_t i = 0;
  for (; i + kN <= C; i += kN) hn::StoreU(hn::Add(hn::LoadU(d, a + i), hn::LoadU(d, b + i)), d, out + i);
  for (; i < C; ++i) out[i] = a[i] + b[i];
}

HWY_INLINE void AddToRow(const float* HWY_RESTRICT dout, float* HWY_RESTRICT row, size_t C) {
  size_t i = 0;
  for (; i + kN <= C; i += kN) hn::StoreU(hn::Add(hn::LoadU(d, row + i), hn::LoadU(d, dout + i)), d, row + i);
  for (; i < C; ++i) row[i] += dout[i];
}

// Both sums use a single read of dout.
HWY_INLINE void AddToRows(const float* HWY_RESTRICT dout, float* HWY_RESTRICT a, float* HWY_RESTRICT b, size_t C) {
  size_t i = 0;
  for (; i + kN <= C; i += kN) {
    const V gradient = hn::LoadU(d, dout + i);
    hn::StoreU(hn::Add(hn::LoadU(d, a + i), gradient), d, a + i);
    hn::StoreU(hn::Add(hn::LoadU(d, b + i), gradient), d, b + i);
  }
  for (; i < C; ++i) {
    a[i] += dout[i];
    b[i] += dout[i];
  }
}

}  // namespace

void EmbeddingForward(const int32_t* tokens, const float* token_table, const float* position_table, float* out,
                      size_t T, size_t C, size_t first_position) {
  for (size_t t = 0; t < T; ++t) {
    const float* row = token_table + static_cast<size_t>(tokens[t]) * C;
    if (position_table == nullptr) {
      std::memcpy(out + t * C, row, C * sizeof(float));
    } else {
      AddRows(row, position_table + (first_position + t) * C, out + t * C, C);
    }
  }
}

void EmbeddingBackward(const int32_t* tokens, const float* dout, float* dtoken_table, float* dposition_table, size_t T,
                       size_t C, size_t first_position) {
  for (size_t t = 0; t < T; ++t) {
    float* token = dtoken_table == nullptr ? nullptr : dtoken_table + static_cast<size_t>(tokens[t]) * C;
    float* position = dposition_table == nullptr ? nullptr : dposition_table + (first_position + t) * C;
    if (token != nullptr && position != nullptr) {
      AddToRows(dout + t * C, token, position, C);
    } else if (float* row = token != nullptr ? token : position; row != nullptr) {
      AddToRow(dout + t * C, row, C);
    }
  }
}

}  // namespace quern::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace quern::kernels {

HWY_EXPORT(EmbeddingForward);
HWY_EXPORT(EmbeddingBackward);

void embedding_forward(const int32_t* tokens, const float* token_table, const float* position_table, float* out,
                       size_t T, size_t C, size_t first_position) noexcept {
  HWY_DYNAMIC_DISPATCH(EmbeddingForward)(tokens, token_table, position_table, out, T, C, first_position);
}

void embedding_backward(const int32_t* tokens, const float* dout, float* dtoken_table, float* dposition_table, size_t T,
                        size_t C, size_t first_position) noexcept {
  HWY_DYNAMIC_DISPATCH(EmbeddingBackward)(tokens, dout, dtoken_table, dposition_table, T, C, first_position);
}

}  // namespace quern::kernels
#endif  // HWY_ONCE
