// Runs the model one token at a time, with a cache of the keys and values of earlier positions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "core/arena.h"
#include "core/thread_pool.h"
#include "nn/models/language_model.h"

namespace quern {

struct DecoderOptions {
  // Maximum number of threads that share a token or a prompt, each computing a part of every operation's output.
  // Operations with too little work use fewer threads, or one. The result is bit-identical for any number.
  size_t threads = 1;

  // For tests.
  bool share_all = false;                            // use all threads however little work there is
  std::function<void(const Member&)> before_pass{};  // called by every member
};

// The logits are bit-identical to those of a full forward pass over window(), without dropout, however the tokens
// arrived.
//
// The model sees at most `context` positions. A token that would exceed this makes the window slide: the last context /
// 2 tokens remain, move to the positions from 0 on, and are computed again. The window therefore depends only on the
// tokens, and the amortized cost of sliding is about one prompt position per token.
//
// One caller at a time. The model must outlive the decoder. Call clear() after its weights or the target have changed.
// A model with packed weights is several times faster here: otherwise GEMM packs each matrix for every token.
class Decoder {
 public:
  explicit Decoder(const nn::LanguageModel& model, const DecoderOptions& options = {});

  // Appends one or more tokens. Returns the logits (V) at the last one's position, valid until the next call. Throws
  // Error, without any change, if there are no tokens or one is not in the vocabulary. Does not allocate. `tokens` must
  // not alias window(). Rethrows exceptions of team members; the tokens are then in the window, and the next call
  // computes them.
  std::span<const float> append(std::span<const int32_t> tokens);
  std::span<const float> append(int32_t token) { return append(std::span(&token, 1)); }

  // Discards all tokens.
  void clear();

  std::span<const int32_t> window() const { return window_; }  // the tokens that the model sees
  const nn::LanguageModel& model() const { return *model_; }
  size_t planned_bytes() const { return arena_.planned_bytes() + work_.planned_bytes(); }
  // The number of threads that share `rows` positions.
  size_t members_for(size_t rows) const;

 private:
  void lay_out_cache();
  void check_tokens(std::span<const int32_t> tokens) const;
  void enter(std::span<const int32_t> tokens);
  void pass(const Member& member);

  const nn::LanguageModel* model_;
  DecoderOptions options_;
  std::vector<int32_t> window_;
  size_t cached_ = 0;  // number of positions in the window whose keys and values are cached

  Arena arena_;  // of the cache
  nn::KeyValueCache cache_;
  nn::Workspace work_;
  ThreadPool pool_;  // last: its threads use all of the above
};

}  // namespace quern
