// Sequences and n-step returns against plain samples of the same bytes, from a buffer to which eight actors add their
// rows in turn: consecutive rows of an episode are eight ids apart.
#include <string>

#include "benchmarks/workloads.h"
#include "replay/buffer.h"
#include "replay/n_step.h"
#include "replay/sampler.h"
#include "replay/sequences.h"

namespace quern::bench {
namespace {

using replay::DType;
using replay::ReplayBuffer;
using replay::Sampler;

constexpr size_t kActors = 8, kEpisode = 200, kLength = 16, kSteps = 5, kBatch = 256;

struct Rows {
  const char* name;
  DType dtype;
  size_t elements;    // of an observation
  uint64_t capacity;  // far larger than the caches
};
constexpr Rows kKinds[] = {{"planes", DType::kF32, 12480, 20000},    // 49,920 bytes, as in the other benchmarks
                           {"frames", DType::kU8, 28224, 30000},     // 84 x 84 x 4
                           {"states", DType::kF32, 17, 2'000'000}};  // of a simulated robot

// Columns of a schema in the caller's memory.
struct Arrays {
  Arrays(const replay::Schema& schema, size_t rows) {
    for (const replay::Column& column : schema.columns()) {
      memory.emplace_back(rows * column.value_bytes());
      pointers.push_back(memory.back().data());
    }
  }
  std::vector<std::vector<std::byte>> memory;
  std::vector<std::byte*> pointers;
};

struct State {
  explicit State(const Rows& rows, uint64_t capacity)
      : schema({{.name = "observation", .dtype = rows.dtype, .shape = {rows.elements}},
                {.name = "action", .dtype = DType::kF32, .shape = {6}},
                {.name = "reward", .dtype = DType::kF32},
                {.name = "terminal", .dtype = DType::kBool}}),
        buffer(ReplayBuffer::create(schema, {.capacity = capacity, .terminal = "terminal"})),
        sampler(buffer, 1),
        out(schema, kBatch * kLength),
        next(schema, kBatch) {
    Arrays row(schema, kActors);
    const std::vector<const std::byte*> from(row.pointers.begin(), row.pointers.end());
    replay::Streams streams(kActors);
    for (uint64_t step = 0; step * kActors < capacity; ++step) {
      for (std::byte& flag : row.memory[3]) flag = static_cast<std::byte>(step % kEpisode + 1 == kEpisode ? 1 : 0);
      buffer.add(from, kActors, {}, {}, streams.get());
    }
    after[0] = next.pointers[0];  // only the observation
  }

  replay::Schema schema;
  ReplayBuffer buffer;
  Sampler sampler;
  Arrays out, next;
  std::vector<std::byte*> after = std::vector<std::byte*>(4);
  uint64_t call = 0;
};

void bench_sequences(Context& context, State& s, const std::string& name) {
  constexpr size_t kSequences = kBatch / kLength;
  const auto sequences = [&] {
    replay::sample_sequences(s.buffer, {.starts = {.rows = kSequences}, .length = kLength}, {.columns = s.out.pointers},
                             1, s.call++);
  };
  const auto plain = [&] { s.sampler.sample({.rows = kSequences * kLength}, {s.out.pointers}); };
  const std::vector<double> times = best_times(context, {sequences, plain}, 3.0, 200);
  const double gigabytes = static_cast<double>(kSequences * kLength * s.schema.value_bytes()) * 1e-9;
  context.add(name, gigabytes / times[0], "GB/s", "sample()", gigabytes / times[1], 0.7);
}

void bench_n_step(Context& context, State& s, const std::string& name) {
  std::vector<float> returns(kBatch), discounts(kBatch);
  const auto n_step = [&] {
    replay::sample_n_step(s.buffer, {.starts = {.rows = kBatch}, .n = kSteps, .gamma = 0.99, .reward = 2},
                          {.columns = s.out.pointers,
                           .next = s.after,
                           .last = {},
                           .returns = returns.data(),
                           .discounts = discounts.data()},
                          1, s.call++);
  };
  const auto plain = [&] {
    s.sampler.sample({.rows = kBatch}, {s.out.pointers});
    s.sampler.sample({.rows = kBatch}, {s.after});
  };
  const std::vector<double> times = best_times(context, {n_step, plain}, 3.0, 200);
  const size_t row = s.schema.value_bytes() + s.schema.columns()[0].value_bytes();
  const double gigabytes = static_cast<double>(kBatch * row) * 1e-9;
  context.add(name, gigabytes / times[0], "GB/s", "sample()", gigabytes / times[1], 0.7);
}

}  // namespace

void bench_replay_episodes(Context& context) {
  for (const Rows& rows : kKinds) {
    const std::string sequences = fmt::format("replay/sequences/{}", rows.name);
    const std::string n_step = fmt::format("replay/n_step/{}", rows.name);
    if (!context.wants(sequences) && !context.wants(n_step)) continue;
    State state(rows, context.quick() ? 4000 : rows.capacity);
    if (context.wants(sequences)) bench_sequences(context, state, sequences);
    if (context.wants(n_step)) bench_n_step(context, state, n_step);
  }
}

}  // namespace quern::bench
