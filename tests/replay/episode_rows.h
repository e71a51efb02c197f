// Rows that know their actor, episode and step, so that a wrong neighbour is noticed.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "replay/buffer.h"
#include "replay/sequences.h"

namespace quern::test {

// actor, episode and step of the actor, reward, and the two ends.
inline replay::Schema episode_schema() {
  using replay::DType;
  return replay::Schema({{.name = "actor", .dtype = DType::kU64},
                         {.name = "episode", .dtype = DType::kU64},
                         {.name = "step", .dtype = DType::kU64},
                         {.name = "reward", .dtype = DType::kF32},
                         {.name = "terminal", .dtype = DType::kBool},
                         {.name = "truncated", .dtype = DType::kU8}});
}

inline replay::BufferOptions episode_options(uint64_t capacity, bool prioritised = false) {
  return {.capacity = capacity,
          .prioritised = prioritised,
          .prefault = false,
          .terminal = "terminal",
          .truncated = "truncated"};
}

// Arrays of `rows` rows.
struct EpisodeRows {
  explicit EpisodeRows(size_t rows = 1)
      : actor(rows), episode(rows), step(rows), reward(rows), terminal(rows), truncated(rows) {}

  std::vector<const std::byte*> inputs() const {
    return {bytes(actor), bytes(episode), bytes(step), bytes(reward), bytes(terminal), bytes(truncated)};
  }
  std::vector<std::byte*> outputs() {
    std::vector<std::byte*> columns;
    for (const std::byte* column : inputs()) columns.push_back(const_cast<std::byte*>(column));
    return columns;
  }
  template <typename T>
  static const std::byte* bytes(const std::vector<T>& values) {
    return reinterpret_cast<const std::byte*>(values.data());
  }

  std::vector<uint64_t> actor, episode, step;
  std::vector<float> reward;
  std::vector<uint8_t> terminal, truncated;
};

// The reward of a row: a function of where it is, so that a return can be checked. Small whole numbers: sums are exact.
inline float reward_of(uint64_t actor, uint64_t episode, uint64_t step) {
  return static_cast<float>((actor * 31 + episode * 7 + step * 3) % 16);
}

// How an episode ends: its number of rows, and whether it was cut off. A function of actor and episode.
inline uint64_t length_of(uint64_t actor, uint64_t episode) { return 1 + (actor * 5 + episode * 11) % 23; }
inline bool is_truncated(uint64_t actor, uint64_t episode) { return (actor + episode) % 3 == 0; }

// Plays episodes, one row after another.
class Actor {
 public:
  explicit Actor(uint64_t number) : number_(number) {}

  // The next `rows` rows.
  void fill(EpisodeRows& out, size_t rows) {
    for (size_t i = 0; i < rows; ++i) {
      const bool last = step_ + 1 == length_of(number_, episode_);
      out.actor[i] = number_;
      out.episode[i] = episode_;
      out.step[i] = step_;
      out.reward[i] = reward_of(number_, episode_, step_);
      out.terminal[i] = last && !is_truncated(number_, episode_) ? 1 : 0;
      out.truncated[i] = last && is_truncated(number_, episode_) ? 1 : 0;
      ++step_;
      if (last) ++episode_, step_ = 0;
    }
  }

  // Begins the next episode without having ended this one.
  void abandon() { ++episode_, step_ = 0; }

 private:
  uint64_t number_, episode_ = 0, step_ = 0;
};

// What is wrong with the sequence of `length` rows from row `first` on; empty if nothing is.
inline std::string fault_in(const EpisodeRows& rows, size_t first, size_t length) {
  for (size_t i = first; i < first + length; ++i) {
    if (rows.reward[i] != reward_of(rows.actor[i], rows.episode[i], rows.step[i])) return "a mixed row";
    if (i == first) continue;
    if (rows.actor[i] != rows.actor[first]) return "two actors";
    if (rows.episode[i] != rows.episode[first]) return "two episodes";
    if (rows.step[i] != rows.step[i - 1] + 1) return "a gap";
    if (rows.terminal[i - 1] != 0 || rows.truncated[i - 1] != 0) return "rows after an end";
  }
  return "";
}

}  // namespace quern::test
