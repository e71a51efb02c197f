// The buffer behind quern::ReplayBuffer, with what the parts of the interface share.
#pragma once

#include <quern/replay.h>

#include <span>
#include <string_view>
#include <vector>

#include "api/replay_columns.h"
#include "replay/shared_sampler.h"
#include "replay/stats.h"

namespace quern {

namespace api {

replay::BufferOptions options_from(const ReplayOptions& options);
replay::Wait wait_from(double timeout);  // Error for nan

}  // namespace api

class ReplayBuffer::Impl {
 public:
  Impl(replay::ReplayBuffer&& its_buffer, std::optional<uint64_t> seed)
      : buffer(std::move(its_buffer)),
        sampler(buffer, replay::Seed(seed)),
        meter(buffer),
        columns(api::columns_of(buffer.schema())) {}

  // Makes room in `out` for `rows` rows of the named columns (all if there are none), reusing its memory. The pointers
  // of other columns are null.
  std::vector<std::byte*> prepare(Sample& out, size_t rows, std::span<const std::string> names = {}) const;

  // `rows_each` is the number of rows that come with each draw.
  replay::SampleRequest request_from(size_t n, const SampleOptions& options, size_t rows_each,
                                     std::string_view function) const;

  uint64_t add(const ColumnValues& values, std::optional<float> priority, double timeout,
               std::span<replay::Stream> streams);
  std::optional<uint64_t> add_batch(const ColumnValues& values, std::span<const float> priorities, double timeout,
                                    std::span<replay::Stream> streams);

  replay::ReplayBuffer buffer;
  replay::SharedSampler sampler;
  replay::StatsMeter meter;
  std::vector<Column> columns;
};

// Access to the memory of a sample.
struct SampleMemory {
  static std::vector<uint64_t>& ids(Sample& sample) { return sample.ids_; }
  static std::vector<uint64_t>& ages(Sample& sample) { return sample.ages_; }
  static std::vector<float>& weights(Sample& sample) { return sample.weights_; }
};

}  // namespace quern
