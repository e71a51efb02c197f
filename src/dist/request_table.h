// The pending requests of a communicator, by number.
#pragma once

#include <deque>
#include <vector>

#include "dist/communicator.h"

namespace quern::dist {

// Entries stay in place, and are reused.
template <typename T>
class RequestTable {
 public:
  // An entry in the state in which it was given back, or a new one.
  Communicator::Request take() {
    if (free_.empty()) {
      entries_.emplace_back();
      return static_cast<Communicator::Request>(entries_.size() - 1);
    }
    const Communicator::Request id = free_.back();
    free_.pop_back();
    return id;
  }
  void give_back(Communicator::Request id) { free_.push_back(id); }

  T& operator[](Communicator::Request id) { return entries_[id]; }
  std::deque<T>& all() { return entries_; }

 private:
  std::deque<T> entries_;
  std::vector<Communicator::Request> free_;
};

}  // namespace quern::dist
