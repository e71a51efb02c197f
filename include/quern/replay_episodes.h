// Episodes in a replay buffer: sequences and n-step returns. Included by <quern/replay.h>.
//
//   quern::ReplayBuffer buffer({{"state", "float32", {8}}, {"reward", "float32"}, {"done", "bool"}},
//                              {.capacity = 100'000, .terminal = "done"});
//   quern::ReplayWriter writer = buffer.writer();  // one for each actor
//   writer.add({{"state", state}, {"reward", reward}, {"done", done}});
//
//   quern::SequenceSample sequences = buffer.sample_sequences(32, 16);
//   quern::NStepSample steps = buffer.sample_n_step(256, {.n = 5, .gamma = 0.99, .next = {"state"}});
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <quern/replay_values.h>

namespace quern {

enum class Rule : uint8_t {
  kUniform,             // with replacement
  kWithoutReplacement,  // uniform, no row twice in one call
  kPrioritised,         // in proportion to priority ^ alpha
  kPrioritized = kPrioritised,
  kRecent,  // the probability halves with every `half_life` rows of age
};

inline constexpr double kNoTimeout = -1;

struct SampleOptions {
  std::optional<Rule> rule = {};  // by default kPrioritised in a prioritised buffer, otherwise kUniform
  double half_life = 0;           // of kRecent, in rows
  double beta = 0.4;              // of kPrioritised: exponent of the importance weights
  double timeout = kNoTimeout;    // seconds to wait for the rate limit
};

struct SequenceOptions {
  SampleOptions draw = {};  // of the first rows
  // false: only rows with length - 1 further rows in their episode are drawn. true: every row is, and sequences that
  // end early are filled up with zeros.
  bool pad = false;
  std::vector<std::string> columns = {};  // empty: all
};

// n sequences of `length` consecutive rows of one episode each.
struct SequenceSample {
  Sample rows;                    // values and ids are (n, length, ...); ages and weights (n), of the first rows
  std::vector<uint8_t> mask;      // (n, length): 0 where filled up; the id there is 2^64 - 1
  std::vector<uint64_t> lengths;  // (n): rows that are not filled up
};

// A row t with the sum of the rewards of the next k <= n steps of its episode, for the target
// return + discount * value(what follows). docs/replay.md has the table of what happens at the end of an episode.
struct NStepOptions {
  size_t n = 1;
  double gamma = 0.99;
  std::string reward = "reward";          // a column with one number per row
  std::vector<std::string> next = {};     // columns of the row k steps later: those of the observation
  std::vector<std::string> last = {};     // columns of the last of the k rows: those of an observation after the step
  std::vector<std::string> columns = {};  // of row t; empty: all
  SampleOptions draw = {};
};

struct NStepSample {
  Sample rows;                   // row t
  Sample next;                   // the `next` and `last` columns
  std::vector<float> returns;    // reward[t] + gamma * reward[t + 1] + ... , k terms
  std::vector<float> discounts;  // gamma^k, or 0 if the episode ended in a terminal state
  std::vector<uint64_t> steps;   // k
};

// Adds the rows of one actor: each row continues the episode of the one before, until a row that ends it. One thread at
// a time; an actor in another thread or process has a writer of its own. The buffer must outlive it. A child of fork()
// that uses its parent's begins new episodes.
class ReplayWriter {
 public:
  ReplayWriter(ReplayWriter&&) noexcept;
  ReplayWriter& operator=(ReplayWriter&&) noexcept;
  ~ReplayWriter();

  // As ReplayBuffer::add() and add_batch(). A writer of several streams takes batches of one row for each (or several
  // such batches one after another), as of environments that step together: row r belongs to stream r % streams.
  uint64_t add(const ColumnValues& values, std::optional<float> priority = {}, double timeout = kNoTimeout);
  std::optional<uint64_t> add_batch(const ColumnValues& values, std::span<const float> priorities = {},
                                    double timeout = kNoTimeout);

  // The next row begins a new episode: for an environment that was reset before its episode ended.
  void reset();

 private:
  friend class ReplayBuffer;
  class Impl;
  explicit ReplayWriter(std::unique_ptr<Impl> impl) noexcept;
  std::unique_ptr<Impl> impl_;
};

}  // namespace quern
