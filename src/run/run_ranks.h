// The ranks of a run: all of them execute the same run in step, and rank 0 writes its directory.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "core/aligned_buffer.h"
#include "core/error.h"
#include "dist/communicator.h"
#include "nn/parameter_table.h"
#include "optim/optimizer.h"
#include "train/plan.h"
#include "train/rank_exchange.h"

namespace quern::train {

// An error that every rank has found: none of them waits for another.
class AgreedError : public Error {
 public:
  explicit AgreedError(const Error& error) : Error(error) {}
};

// Every function is called by all ranks, in the same order, between steps. With one process they do nothing.
class RunRanks {
 public:
  // `ranks`, null for one process, must outlive this object.
  explicit RunRanks(dist::Communicator* ranks) : ranks_(ranks != nullptr && ranks->size() > 1 ? ranks : nullptr) {}

  bool several() const { return ranks_ != nullptr; }
  bool writes() const { return ranks_ == nullptr || ranks_->rank() == 0; }
  RankOf place() const { return ranks_ == nullptr ? RankOf{} : RankOf{ranks_->rank(), ranks_->size()}; }
  dist::Communicator* communicator() const { return ranks_; }

  // Whether any rank says so.
  bool any(bool flag) const;
  // Returns when all ranks have called it.
  void meet() const { static_cast<void>(any(false)); }
  // AgreedError, with the first line that differs, unless all have the same text.
  void check_same(std::string_view what, const std::string& text) const;
  // The text of rank 0.
  std::string from_first(const std::string& text) const;
  // Calls body(), which must not communicate. If it fails on any rank, all throw the AgreedError of the first such
  // rank.
  void agree(const std::function<void()>& body) const;
  // Ends the other ranks, because this one has failed.
  void abort() const noexcept;

 private:
  std::vector<std::string> gather(const std::string& text) const;

  dist::Communicator* ranks_;
};

// The states of an optimizer, of which every rank has those of its segments. Rank 0 can save all of them: it receives
// one segment at a time.
class RankedStates {
 public:
  // The arguments must outlive this object.
  RankedStates(const RunRanks& ranks, const nn::ParameterTable& table, Optimizer& optimizer);

  // To save from or load into. With several ranks, rank 0 may read each of them once, in order, while the others call
  // send().
  const std::vector<checkpoint::TensorRef>& refs() const { return refs_; }
  // Not on rank 0: sends the states of this rank's segments.
  void send();
  // Forgets the states of all segments that belong to others, and releases their memory.
  void release_foreign();

 private:
  std::span<float> values_of(const OptimizerState& state, const nn::Segment& segment) const;
  std::span<const std::byte> read(size_t state, size_t parameter, size_t at);

  const RunRanks& ranks_;
  const nn::ParameterTable& table_;
  Optimizer& optimizer_;
  Ownership owners_;
  std::vector<checkpoint::TensorRef> refs_;
  AlignedBuffer<float> received_;  // a segment
};

}  // namespace quern::train
