// Draws sequences: consecutive rows of one episode.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "replay/buffer.h"
#include "replay/draw.h"

namespace quern::replay {

struct SequenceRequest {
  SampleRequest starts = {};  // `rows` is the number of sequences; the rule draws their first rows
  size_t length = 0;          // rows of a sequence
  // false: only rows with length - 1 further rows in their episode are drawn. true: every row is drawn, and a sequence
  // that ends early, because its episode does or the next row is not there, is filled up with zeros.
  bool pad = false;
};

// (sequences, length) each, unless stated otherwise; null for outputs that are not wanted.
struct SequenceArrays {
  std::span<std::byte* const> columns;  // as many as the schema has
  uint64_t* ids = nullptr;              // kNoRow where filled up
  bool* mask = nullptr;                 // false where filled up
  uint64_t* lengths = nullptr;          // (sequences): rows that are not filled up
  uint64_t* ages = nullptr;             // (sequences): of the first row
  float* weights = nullptr;             // (sequences): importance weights of the first row
};

// Error: no episodes in this buffer, an invalid request. Waits until the rate limit admits the rows, sequences times
// length; TimedOut after `wait`.
void admit_sequences(const ReplayBuffer& buffer, const SequenceRequest& request, const SequenceArrays& out,
                     const Wait& wait = {});

// Draws them, after admit_sequences(). All rows of a sequence are complete rows of one episode in their order: each was
// copied between two checks that the slot holds the row, and the row its place in that episode. The result is a
// function of seed, call and the contents of the buffer. Error when no row can be the first of a sequence.
void sample_sequences(const ReplayBuffer& buffer, const SequenceRequest& request, const SequenceArrays& out,
                      uint64_t seed, uint64_t call);

// Error naming the function, unless the buffer has episodes.
void expect_episodes(const ReplayBuffer& buffer, std::string_view function);

}  // namespace quern::replay
