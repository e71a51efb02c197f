#include <quern/replay_episodes.h>

#include "api/replay_impl.h"
#include "core/error.h"

namespace quern {

class ReplayWriter::Impl {
 public:
  Impl(ReplayBuffer::Impl* its_buffer, size_t count) : buffer(its_buffer), streams(count) {}

  ReplayBuffer::Impl* buffer;
  replay::Streams streams;
};

ReplayWriter::ReplayWriter(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
ReplayWriter::ReplayWriter(ReplayWriter&&) noexcept = default;
ReplayWriter& ReplayWriter::operator=(ReplayWriter&&) noexcept = default;
ReplayWriter::~ReplayWriter() = default;

uint64_t ReplayWriter::add(const ColumnValues& values, std::optional<float> priority, double timeout) {
  impl_->streams.expect_rows(1);
  return impl_->buffer->add(values, priority, timeout, impl_->streams.get());
}

std::optional<uint64_t> ReplayWriter::add_batch(const ColumnValues& values, std::span<const float> priorities,
                                                double timeout) {
  impl_->streams.expect_rows(api::rows_from(impl_->buffer->buffer.schema(), values, "add_batch").rows);
  return impl_->buffer->add_batch(values, priorities, timeout, impl_->streams.get());
}

void ReplayWriter::reset() { impl_->streams.reset(); }

ReplayWriter ReplayBuffer::writer(size_t streams) {
  replay::expect_episodes(impl_->buffer, "writer");
  return ReplayWriter(std::make_unique<ReplayWriter::Impl>(impl_.get(), streams));
}

SequenceSample ReplayBuffer::sample_sequences(size_t n, size_t length, const SequenceOptions& options) {
  const replay::Wait wait = api::wait_from(options.draw.timeout);
  const replay::SequenceRequest request{
      .starts = impl_->request_from(n, options.draw, length, "sample_sequences"), .length = length, .pad = options.pad};
  SequenceSample out;
  const std::vector<std::byte*> columns = impl_->prepare(out.rows, n * length, options.columns);
  SampleMemory::ages(out.rows).resize(n);
  SampleMemory::weights(out.rows).resize(n);
  out.mask.resize(n * length);
  out.lengths.resize(n);
  static_assert(sizeof(bool) == 1);
  impl_->sampler.sample_sequences(request,
                                  {.columns = columns,
                                   .ids = SampleMemory::ids(out.rows).data(),
                                   .mask = reinterpret_cast<bool*>(out.mask.data()),
                                   .lengths = out.lengths.data(),
                                   .ages = SampleMemory::ages(out.rows).data(),
                                   .weights = SampleMemory::weights(out.rows).data()},
                                  wait);
  return out;
}

NStepSample ReplayBuffer::sample_n_step(size_t n, const NStepOptions& options) {
  const replay::Wait wait = api::wait_from(options.draw.timeout);
  const replay::NStepRequest request{.starts = impl_->request_from(n, options.draw, 1, "sample_n_step"),
                                     .n = options.n,
                                     .gamma = options.gamma,
                                     .reward = impl_->buffer.schema().index_of(options.reward)};
  if (options.next.empty() && options.last.empty()) {
    throw Error("[replay] sample_n_step: expected `next` or `last` columns, found neither");
  }
  NStepSample out;
  const std::vector<std::byte*> columns = impl_->prepare(out.rows, n, options.columns);
  std::vector<std::string> following = options.next;
  following.insert(following.end(), options.last.begin(), options.last.end());
  std::vector<std::byte*> next = impl_->prepare(out.next, n, following), last(next.size());
  for (const std::string& name : options.last) {
    std::swap(last[impl_->buffer.schema().index_of(name)], next[impl_->buffer.schema().index_of(name)]);
  }
  out.returns.resize(n);
  out.discounts.resize(n);
  out.steps.resize(n);
  impl_->sampler.sample_n_step(request,
                               {.columns = columns,
                                .next = next,
                                .last = last,
                                .returns = out.returns.data(),
                                .discounts = out.discounts.data(),
                                .steps = out.steps.data(),
                                .ids = SampleMemory::ids(out.rows).data(),
                                .next_ids = SampleMemory::ids(out.next).data(),
                                .ages = SampleMemory::ages(out.rows).data(),
                                .weights = SampleMemory::weights(out.rows).data()},
                               wait);
  return out;
}

}  // namespace quern
