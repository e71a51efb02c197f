// One thread that adds to and samples from a replay buffer, against memcpy of the same bytes to and from the same
// memory.
#include <algorithm>
#include <functional>
#include <random>
#include <string>

#include "benchmarks/replay_rows.h"
#include "benchmarks/workloads.h"
#include "replay/buffer.h"
#include "replay/sampler.h"

namespace quern::bench {
namespace {

using replay::ReplayBuffer;
using replay::Sampler;

struct State {
  explicit State(uint64_t capacity)
      : buffer(ReplayBuffer::create(replay_schema(), {.capacity = capacity})), sampler(buffer, 1) {
    source.fill();
    for (uint64_t rows = 0; rows < capacity; rows += kReplayBatch) buffer.add(in, kReplayBatch);
  }

  ReplayBuffer buffer;
  ReplayRows source, target;
  std::vector<std::byte*> from = source.arrays(), to = target.arrays();
  std::vector<const std::byte*> in{from.begin(), from.end()};
  Sampler sampler;
  uint64_t next = 0;  // slot that the reference writes
};

double gigabytes(size_t rows) { return static_cast<double>(rows * kReplayRowBytes) * 1e-9; }

// memcpy writes to the columns of the buffer itself, the same rows as add(), so that both use the same pages and no
// second buffer is needed. No other thread accesses it meanwhile.
void copy_row(State& s, size_t row) {
  for (size_t c = 0; c < kReplayColumns; ++c) {
    std::memcpy(s.buffer.stored(c, s.next), s.from[c] + row * kReplayRow[c], kReplayRow[c]);
  }
  s.next = (s.next + 1) % s.buffer.capacity();
}

void copy_whole_batch(State& s) {
  if (s.next + kReplayBatch > s.buffer.capacity()) s.next = 0;
  for (size_t c = 0; c < kReplayColumns; ++c) {
    std::memcpy(s.buffer.stored(c, s.next), s.from[c], kReplayBatch * kReplayRow[c]);
  }
  s.next = (s.next + kReplayBatch) % s.buffer.capacity();
}

// Checks that the rows in the buffer and the sampled rows are rows of the source.
void check(Context& context, State& s, const std::string& name) {
  s.sampler.sample({.rows = kReplayBatch}, {s.to});
  if (!s.target.all_of(s.source)) context.wrong_answer(name, "a sampled row differs from every row that was added");
}

void bench_add_one(Context& context) {
  const std::string name = "replay/add_one";
  if (!context.wants(name)) return;
  State s(context.quick() ? 1000 : 10000);
  const size_t rows = s.buffer.capacity();
  const auto ours = [&] {
    for (size_t i = 0; i < rows; ++i) {
      const size_t row = i % kReplayBatch;
      const std::byte* const columns[] = {s.from[0] + row * kReplayRow[0], s.from[1] + row * kReplayRow[1],
                                          s.from[2] + row * kReplayRow[2]};
      s.buffer.add(columns, 1);
    }
  };
  const auto copies = [&] {
    for (size_t i = 0; i < rows; ++i) copy_row(s, i % kReplayBatch);
  };
  const std::vector<double> times = best_times(context, {ours, copies}, 3.0, 7);
  check(context, s, name);
  context.add(name, gigabytes(rows) / times[0], "GB/s", "memcpy", gigabytes(rows) / times[1], 0.7);
}

void bench_add_batch(Context& context, State& s) {
  const std::string name = "replay/add_batch";
  const size_t batches = context.quick() ? 10 : 100;
  const size_t rows = batches * kReplayBatch;
  const auto ours = [&] {
    for (size_t i = 0; i < batches; ++i) s.buffer.add(s.in, kReplayBatch);
  };
  const auto by_rows = [&] {
    for (size_t i = 0; i < rows; ++i) copy_row(s, i % kReplayBatch);
  };
  const auto whole = [&] {
    for (size_t i = 0; i < batches; ++i) copy_whole_batch(s);
  };
  const std::vector<double> times = best_times(context, {ours, by_rows, whole}, 4.0, 7);
  check(context, s, name);
  context.add(name, gigabytes(rows) / times[0], "GB/s", "memcpy", gigabytes(rows) / std::min(times[1], times[2]), 0.8);
}

// The reference draws its rows with a generator of negligible cost.
void bench_sample(Context& context, State& s) {
  const std::string name = "replay/sample_gather";
  constexpr size_t kBatches = 20;
  const size_t rows = kBatches * kReplayBatch;
  std::mt19937_64 generator(1);
  const auto ours = [&] {
    for (size_t i = 0; i < kBatches; ++i) s.sampler.sample({.rows = kReplayBatch}, {s.to});
  };
  const auto gather = [&] {
    for (size_t i = 0; i < rows; ++i) {
      const uint64_t slot = generator() % s.buffer.capacity();
      for (size_t c = 0; c < kReplayColumns; ++c) {
        std::memcpy(s.to[c] + i % kReplayBatch * kReplayRow[c], s.buffer.stored(c, slot), kReplayRow[c]);
      }
    }
  };
  const std::vector<double> times = best_times(context, {ours, gather}, 4.0, 15);
  check(context, s, name);
  context.add(name, gigabytes(rows) / times[0], "GB/s", "memcpy", gigabytes(rows) / times[1], 0.7);
}

}  // namespace

void bench_replay(Context& context) {
  bench_add_one(context);
  if (!context.wants("replay/add_batch") && !context.wants("replay/sample_gather")) return;
  State state(context.quick() ? 2560 : 100000);
  if (context.wants("replay/add_batch")) bench_add_batch(context, state);
  if (context.wants("replay/sample_gather")) bench_sample(context, state);
}

}  // namespace quern::bench
