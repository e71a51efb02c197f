// The ranks of a run: all of them execute the same run in step, and rank 0 writes its directory.
#pragma once

#include <cstddef>
#include <exception>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "dist/communicator.h"
#include "train/plan.h"

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
  // Null if no rank has a failure; otherwise, on all ranks, what agree() throws.
  std::exception_ptr agreed(const std::exception_ptr& failure) const;
  // Ends the other ranks, because this one has failed.
  void abort() const noexcept;

 private:
  std::vector<std::string> gather(const std::string& text) const;

  dist::Communicator* ranks_;
};

}  // namespace quern::train
