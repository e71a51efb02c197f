// The model one token at a time: keys and values of earlier positions are kept, not computed again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "core/arena.h"
#include "core/thread_pool.h"
#include "kernels/attention_decode.h"
#include "nn/gpt.h"

namespace quern {

struct DecoderOptions {
  // At most so many share a token or a prompt, each a part of every operation's output; where an operation is too
  // little work for them, fewer or one. The bits do not depend on it.
  size_t threads = 1;

  // For tests.
  bool share_all = false;                            // however little work there is
  std::function<void(const Member&)> before_pass{};  // called by every member
};

// The logits have the bits of a whole forward pass over window(), without dropout, however the tokens arrived.
//
// The model sees at most `context` positions. A token that would be one too many makes the window slide: the last
// context / 2 tokens stay, move to the positions from 0 on, and are computed again. So the window depends on the tokens
// alone, and sliding costs, spread over the tokens until the next slide, about one position of a prompt per token.
//
// One caller at a time. The model must outlive the decoder; after its weights or the target changed, call clear().
// A model with packed weights is several times faster here: GEMM would pack each matrix for every token.
class Decoder {
 public:
  explicit Decoder(const Gpt& model, const DecoderOptions& options = {});

  // Takes the tokens, any number but 0, after those already there. Returns the logits (V) of the last one's position,
  // valid until the next call. Throws Error, before anything changed, when there are no tokens or one is not of the
  // vocabulary. Allocates nothing. `tokens` must not lie in window(). What a member of the team throws is thrown
  // here; the tokens are then in the window, and the next call computes them.
  std::span<const float> append(std::span<const int32_t> tokens);
  std::span<const float> append(int32_t token) { return append(std::span(&token, 1)); }

  // Forgets all tokens.
  void clear();

  std::span<const int32_t> window() const { return window_; }  // the tokens that the model sees
  const Gpt& model() const { return *model_; }
  size_t planned_bytes() const { return arena_.planned_bytes(); }
  // How many threads share `rows` positions.
  size_t members_for(size_t rows) const;

 private:
  struct Scratch {
    std::span<float> gemm, attention;
  };

  void lay_out();
  void check_tokens(std::span<const int32_t> tokens) const;
  void enter(std::span<const int32_t> tokens);
  void pass(const Member& member);
  void forward(const kernels::NewPositions& positions, const Member& member);
  void block(size_t layer, const kernels::NewPositions& positions, const Member& member);
  kernels::SavedTensor saved() const;
  void round_attention(size_t rows, const Member& member);
  void norm(const Norm& norm, bool add_delta, size_t rows, const Member& member);
  void logits(size_t row, const Member& member);

  const Gpt* model_;
  DecoderOptions options_;
  kernels::CacheShape cache_shape_;
  std::vector<int32_t> window_;
  size_t cached_ = 0;  // positions of the window whose keys and values are in the caches

  Arena arena_;
  std::vector<std::span<float>> caches_;  // one per layer
  std::span<float> x_, normed_, delta_;   // (rows, C)
  std::span<float> qkv_;                  // (rows, 3C)
  std::span<float> wide_;                 // (rows, 4C)
  std::span<kernels::Half> saved_;        // (rows, 4C) where activations have 16 bits
  std::span<float> logits_;               // (V)
  std::vector<Scratch> scratch_;          // of the kernels, one per member
  ThreadPool pool_;                       // last: its threads use all of the above
};

}  // namespace quern
