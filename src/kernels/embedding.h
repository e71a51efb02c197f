// Token and position embedding.
#pragma once

#include <cstddef>
#include <cstdint>

namespace quern::kernels {

// out (T, C) = token_table[tokens[t]] + position_table[first_position + t]; without the second term if position_table
// is null. Token ids must be below the table's number of rows (checked by the caller). Arrays must not overlap. Any
// alignment, any thread, no allocation.
void embedding_forward(const int32_t* tokens, const float* token_table, const float* position_table, float* out,
                       size_t T, size_t C, size_t first_position = 0) noexcept;

// dtoken_table[tokens[t]] += dout[t] and dposition_table[first_position + t] += dout[t], in increasing t. Either table
// may be null.
void embedding_backward(const int32_t* tokens, const float* dout, float* dtoken_table, float* dposition_table, size_t T,
                        size_t C, size_t first_position = 0) noexcept;

}  // namespace quern::kernels
