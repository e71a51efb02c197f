// The libraries that benchmarks compare with. They are in a separate module (quern_peers.so) that `quern bench` loads
// at run time: the product links none of them, and OPENBLAS_CORETYPE can be set before OpenBLAS detects the CPU.
#pragma once

#include <cstddef>
#include <cstdint>

namespace quern::bench {

// A bounded queue of 64-bit items behind plain functions. The call through a pointer costs about 1 ns for every peer;
// Quern's own queue is called through the same kind of pointer.
struct QueuePeer {
  const char* name;
  void* (*create)(size_t capacity);
  void (*destroy)(void* queue);
  bool (*try_push)(void* queue, uint64_t item);
  bool (*try_pop)(void* queue, uint64_t* item);
};

struct Peers {
  // C = A B with BLAS conventions, row-major; ta and tb tell which operand is transposed. One thread.
  void (*sgemm)(bool ta, bool tb, size_t M, size_t N, size_t K, const float* a, size_t lda, const float* b, size_t ldb,
                float* c, size_t ldc);
  const char* (*blas_name)();  // "OpenBLAS 0.3.21 SkylakeX"

  // oneDNN's layer normalisation, one thread. A handle is created once per shape (not timed).
  void* (*layernorm_create)(size_t rows, size_t C);
  void (*layernorm_destroy)(void* handle);
  void (*layernorm_forward)(void* handle, const float* x, const float* weight, const float* bias, float* out,
                            float* mean, float* variance);
  void (*layernorm_backward)(void* handle, const float* x, const float* weight, const float* bias, const float* dout,
                             const float* mean, const float* variance, float* dx, float* dweight, float* dbias);
  const char* (*dnnl_name)();

  const QueuePeer* queues;  // mutex + deque, oneTBB, moodycamel
  size_t queue_count;
};

// Loads the module next to the program; null when it does not exist. Sets OPENBLAS_CORETYPE, if unset, to the best core
// type that the CPU's instructions allow, because old versions fall back to SSE3 on unknown CPUs. `isa_limit` is the
// target in use: with "avx2" the peers are limited to AVX2 as well, for a fair comparison.
const Peers* load_peers(const char* isa_limit);

}  // namespace quern::bench
