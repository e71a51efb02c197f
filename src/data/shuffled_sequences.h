// The sequences of a source in random order, with bounded memory and nothing to save but a position.
#pragma once

#include <cstdint>
#include <memory>

#include "data/sequence_source.h"

namespace quern::data {

struct ShuffleOptions {
  uint64_t seed = 0;
  uint32_t window = 0;  // in sequences
  uint32_t source = 0;  // its index in a mixture, for random numbers of its own
};

// Each window of consecutive sequences is returned in a random order, which is a function of the seed and the window's
// number (core/permutation.h). Holds two windows: while the sequences of one are returned, as many are read for the
// next. A reader that starts within a window first reads the window again from its start.
class ShuffledSequences final : public SequenceSource {
 public:
  ShuffledSequences(std::unique_ptr<const SequenceSource> source, const ShuffleOptions& options);

  uint32_t context() const override { return source_->context(); }
  std::unique_ptr<SequenceReader> reader(const SourcePosition& position) const override;

 private:
  std::unique_ptr<const SequenceSource> source_;
  ShuffleOptions options_;
};

}  // namespace quern::data
