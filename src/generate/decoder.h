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

// The number of positions that the model can address. The only code that decides how long a window can be.
size_t max_positions(const nn::LanguageModel& model);

// The number of positions that a prompt and what is generated after it occupy: all tokens, but at most max_positions(),
// since the window slides beyond.
size_t positions_for(const nn::LanguageModel& model, size_t prompt_tokens, size_t max_tokens);

// Called by the thread that called append() after each block of a prompt that has more than one: `done` of `total`
// positions are computed.
using OnBlock = std::function<void(size_t done, size_t total)>;

struct DecoderOptions {
  // Number of positions that there is memory for: 0, or more than max_positions(), for max_positions(). The cache
  // takes 2 * width floats per position and block of the model.
  size_t capacity = 0;

  // Maximum number of threads that share a token or a prompt, each computing a part of every operation's output.
  // Operations with too little work use fewer threads, or one. The result is bit-identical for any number.
  size_t threads = 1;

  // May throw: append() then fails like after an exception of a team member.
  OnBlock on_block{};

  // For tests.
  size_t block_rows = 0;                             // positions of a prompt per pass; 0 for the fastest number
  bool share_all = false;                            // use all threads however little work there is
  std::function<void(const Member&)> before_pass{};  // called by every member
};

// The logits are bit-identical to those of a full forward pass over window(), without dropout, however the tokens
// arrived.
//
// The model sees at most max_positions(). A token that would exceed this makes the window slide: the last half of the
// tokens remains, moves to the positions from 0 on, and is computed again. The window therefore depends only on the
// tokens, and the amortized cost of sliding is about one prompt position per token.
//
// One caller at a time. The model must outlive the decoder. Call clear() after its weights or the target have changed.
// A model with packed weights is several times faster here: otherwise GEMM packs each matrix for every token.
class Decoder {
 public:
  explicit Decoder(const nn::LanguageModel& model, const DecoderOptions& options = {});

  // Appends one or more tokens. Returns the logits (V) at the last one's position, valid until the next call. Throws
  // Error, without any change, if there are no tokens, one is not in the vocabulary, or the window would exceed a
  // capacity below max_positions(). Does not allocate. `tokens` must not alias window(). Rethrows exceptions of team
  // members; the tokens are then in the window, and the next call computes them.
  std::span<const float> append(std::span<const int32_t> tokens);
  std::span<const float> append(int32_t token) { return append(std::span(&token, 1)); }

  // Replaces all tokens: the same logits as clear() and append(tokens), but positions at the front that have the same
  // tokens as before are not computed again. For several texts from one prompt.
  std::span<const float> restart(std::span<const int32_t> tokens);

  // Discards all tokens.
  void clear();

  std::span<const int32_t> window() const { return window_; }  // the tokens that the model sees
  const nn::LanguageModel& model() const { return *model_; }
  size_t capacity() const { return capacity_; }
  size_t planned_bytes() const { return arena_.planned_bytes() + work_.planned_bytes(); }
  // The number of threads that share `rows` positions.
  size_t members_for(size_t rows) const;

 private:
  void lay_out_cache();
  void check_tokens(std::span<const int32_t> tokens) const;
  void check_capacity(size_t tokens) const;
  void enter(std::span<const int32_t> tokens);
  std::span<const float> compute();
  void pass(const Member& member);

  const nn::LanguageModel* model_;
  DecoderOptions options_;
  size_t limit_, capacity_, block_rows_;
  std::vector<int32_t> window_;
  size_t cached_ = 0;  // number of positions in the window whose keys and values are cached
  size_t rows_ = 0;    // number of positions after those that the current pass computes

  Arena arena_;  // of the cache
  nn::KeyValueCache cache_;
  nn::Workspace work_;
  ThreadPool pool_;  // last: its threads use all of the above
};

}  // namespace quern
