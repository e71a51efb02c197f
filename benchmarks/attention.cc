// Tiled attention against the same maths with the full T x T matrix and Quern's own GEMM, one thread.
#include "kernels/attention.h"

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "benchmarks/attention_reference.h"
#include "benchmarks/workloads.h"
#include "core/aligned_buffer.h"
#include "kernels/gemm.h"

namespace quern::bench {
namespace {

using kernels::AttentionShape;
using kernels::Layout;

// Of the comparison with the full matrix.
constexpr size_t kHeads = 6, kHeadDim = 64, kWidth = kHeads * kHeadDim;

using Floats = AlignedBuffer<float>;  // as in a run

Floats normal(size_t n, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> distribution;
  Floats values(n);
  for (float& value : values.span()) value = distribution(generator);
  return values;
}

// The inputs and outputs of both sides.
struct Tensors {
  explicit Tensors(size_t T)
      : qkv(normal(T * 3 * kWidth, 1)), dout(normal(T * kWidth, 2)), out(T * kWidth), dqkv(T * 3 * kWidth) {}
  Floats qkv, dout, out, dqkv;
};

class Tiled {
 public:
  explicit Tiled(size_t T)
      : t(T),
        shape_{T, kHeads, kHeads, kHeadDim, 3 * kWidth, kWidth},
        logsumexp_(kHeads * T),
        scratch_(kernels::attention_scratch(shape_)) {}

  void forward() {
    kernels::attention_forward(shape_, t.qkv.data(), t.out.data(), logsumexp_.data(), {}, 0, kHeads, scratch_.span());
  }
  void backward() {
    kernels::attention_backward(shape_, t.qkv.data(), t.out.data(), logsumexp_.data(), t.dout.data(), t.dqkv.data(), {},
                                0, kHeads, scratch_.span());
  }
  Tensors t;

 private:
  AttentionShape shape_;
  Floats logsumexp_, scratch_;
};

// Saves the probabilities of every head from forward to backward, as a plain implementation does.
class FullMatrix {
 public:
  explicit FullMatrix(size_t T) : t(T), T_(T), p_(kHeads * T * T), dp_(T * T), scratch_(kernels::kGemmScratch) {}

  void forward() {
    for (size_t h = 0; h < kHeads; ++h) {
      const float* q = t.qkv.data() + h * kHeadDim;
      float* p = p_.data() + h * T_ * T_;
      multiply(Layout::kNT, {T_, T_, kHeadDim}, {q, 3 * kWidth}, {q + kWidth, 3 * kWidth}, p, T_);
      full_softmax(p, T_, kScale);
      multiply(Layout::kNN, {T_, kHeadDim, T_}, {p, T_}, {q + 2 * kWidth, 3 * kWidth}, t.out.data() + h * kHeadDim,
               kWidth);
    }
  }
  void backward() {
    for (size_t h = 0; h < kHeads; ++h) {
      const float *q = t.qkv.data() + h * kHeadDim, *dout = t.dout.data() + h * kHeadDim;
      const float* p = p_.data() + h * T_ * T_;
      float *dq = t.dqkv.data() + h * kHeadDim, *ds = dp_.data();
      multiply(Layout::kTN, {T_, kHeadDim, T_}, {p, T_}, {dout, kWidth}, dq + 2 * kWidth, 3 * kWidth);
      multiply(Layout::kNT, {T_, T_, kHeadDim}, {dout, kWidth}, {q + 2 * kWidth, 3 * kWidth}, ds, T_);
      full_softmax_backward(p, ds, T_, kScale);
      multiply(Layout::kNN, {T_, kHeadDim, T_}, {ds, T_}, {q + kWidth, 3 * kWidth}, dq, 3 * kWidth);
      multiply(Layout::kTN, {T_, kHeadDim, T_}, {ds, T_}, {q, 3 * kWidth}, dq + kWidth, 3 * kWidth);
    }
  }
  Tensors t;

 private:
  static constexpr float kScale = 0.125f;  // 1 / sqrt(64)
  struct Size {
    size_t M, N, K;
  };

  void multiply(Layout layout, Size size, kernels::Operand a, kernels::Operand b, float* c, size_t c_stride) {
    kernels::gemm(
        {.layout = layout, .M = size.M, .N = size.N, .K = size.K, .a = a, .b = b, .c = c, .c_stride = c_stride},
        scratch_.span());
  }

  size_t T_;
  Floats p_, dp_, scratch_;
};

// The largest difference, in units of 1 + |expected|.
double difference(const Floats& expected, const Floats& found) {
  double worst = 0.0;
  for (size_t i = 0; i < expected.size(); ++i) {
    const double e = static_cast<double>(expected[i]), error = std::abs(static_cast<double>(found[i]) - e);
    if (!(error <= worst * (1.0 + std::abs(e)))) worst = error / (1.0 + std::abs(e));
  }
  return worst;
}

void bench_length(Context& context, size_t T, std::optional<double> bar) {
  Tiled tiled(T);
  FullMatrix full(T);
  const std::vector<double> seconds = best_times(context, {[&] { tiled.forward(); }, [&] { full.forward(); },
                                                           [&] { tiled.backward(); }, [&] { full.backward(); }});

  const std::string suffix = "/T=" + std::to_string(T);
  const double worst = std::max(difference(full.t.out, tiled.t.out), difference(full.t.dqkv, tiled.t.dqkv));
  if (!(worst < 1e-4)) context.wrong_answer("attention" + suffix, "off by " + std::to_string(worst));

  // Two products forward and four backward, over the causal half; recomputation in backward does not count.
  const double product = kWidth * static_cast<double>(T * (T + 1)) * 1e-9;
  context.add("attention/forward" + suffix, 2 * product / seconds[0], "GFLOPS", "full matrix",
              2 * product / seconds[1]);
  context.add("attention/forward_backward" + suffix, 6 * product / (seconds[0] + seconds[2]), "GFLOPS", "full matrix",
              6 * product / (seconds[1] + seconds[3]), bar);
}

// Attention over the squares of a board: a query sees all keys. `name` is that of the game.
class OfBoard {
 public:
  OfBoard(size_t T, size_t heads, size_t head_dim, bool causal)
      : shape_{T, heads, heads, head_dim, 3 * heads * head_dim, heads * head_dim, causal},
        qkv_(normal(T * shape_.qkv_stride, 1)),
        dout_(normal(T * shape_.out_stride, 2)),
        out_(T * shape_.out_stride),
        dqkv_(T * shape_.qkv_stride),
        logsumexp_(heads * T),
        scratch_(kernels::attention_scratch(shape_)) {}

  void forward() {
    kernels::attention_forward(shape_, qkv_.data(), out_.data(), logsumexp_.data(), {}, 0, shape_.heads,
                               scratch_.span());
  }
  void backward() {
    kernels::attention_backward(shape_, qkv_.data(), out_.data(), logsumexp_.data(), dout_.data(), dqkv_.data(), {}, 0,
                                shape_.heads, scratch_.span());
  }
  // In billions: a multiplication and an addition for each pair of a query and a key that it sees.
  double product() const {
    const double T = static_cast<double>(shape_.T), pairs = shape_.causal ? T * (T + 1) / 2 : T * T;
    return 2e-9 * pairs * static_cast<double>(shape_.out_stride);
  }

 private:
  AttentionShape shape_;
  Floats qkv_, dout_, out_, dqkv_, logsumexp_, scratch_;
};

void bench_board(Context& context, const std::string& name, size_t T, size_t heads, size_t head_dim) {
  OfBoard all(T, heads, head_dim, false), causal(T, heads, head_dim, true);
  const std::vector<double> seconds = best_times(context, {[&] { all.forward(); }, [&] { causal.forward(); },
                                                           [&] { all.backward(); }, [&] { causal.backward(); }});
  context.add("attention/forward/" + name, 2 * all.product() / seconds[0], "GFLOPS", "causal",
              2 * causal.product() / seconds[1]);
  context.add("attention/forward_backward/" + name, 6 * all.product() / (seconds[0] + seconds[2]), "GFLOPS", "causal",
              6 * causal.product() / (seconds[1] + seconds[3]));
}

}  // namespace

void bench_attention(Context& context) {
  bench_length(context, 64, std::nullopt);
  bench_length(context, 128, std::nullopt);
  bench_length(context, 256, 1.5);
  bench_length(context, 512, std::nullopt);
  bench_length(context, 1024, 2.0);
  bench_board(context, "tictactoe", 9, 4, 16);
  bench_board(context, "connect4", 42, 4, 16);
  bench_board(context, "connect4/heads=2", 42, 2, 32);
  bench_board(context, "chess", 64, 4, 32);
}

}  // namespace quern::bench
