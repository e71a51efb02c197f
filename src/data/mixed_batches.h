// Batches of sequences that are drawn from one or several sources by weight.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "data/batch_reader.h"
#include "data/sequence_source.h"

namespace quern::data {

// The source of a sequence: each with a probability proportional to its weight, as a pure function of its arguments.
// `weights` are positive.
size_t draw_source(uint64_t seed, uint32_t step, uint32_t sequence, const std::vector<double>& weights);

// A sequence comes from one source, and takes the source's next one. So which text a step sees depends on the seed, the
// step and the positions of the sources, which are saved; not on batches, threads or interruptions.
class MixedBatches final : public BatchSource {
 public:
  struct Source {
    std::unique_ptr<const SequenceSource> sequences;
    double weight = 1;
  };

  // At least one source; all have the same context.
  MixedBatches(uint64_t seed, std::vector<Source> sources);

  std::vector<ColumnSpec> columns() const override { return text_columns(sources_.front().sequences->context()); }
  std::unique_ptr<BatchReader> reader(const StreamPosition& position) const override;

 private:
  uint64_t seed_;
  std::vector<Source> sources_;
};

}  // namespace quern::data
