// Processes ("ranks") that train together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "core/range.h"

namespace quern::dist {

// Moves bytes between ranks. It never adds anything up, so results cannot depend on how it works.
//
// One thread at a time may use a communicator. Messages from one rank to another with the same tag arrive in the order
// in which they were sent; a receive has the size of its message.
class Communicator {
 public:
  using Request = uint32_t;

  virtual ~Communicator() = default;
  virtual size_t rank() const = 0;
  virtual size_t size() const = 0;

  // Tags may be 0 to this one.
  virtual uint32_t max_tag() const { return INT32_MAX; }

  // Begin to send or to receive, without waiting for the other side. The data must stay in place until the request is
  // done.
  virtual Request send(size_t to, uint32_t tag, std::span<const std::byte> data) = 0;
  virtual Request receive(size_t from, uint32_t tag, std::span<std::byte> data) = 0;
  // Whether the request is done; if so, it is no longer valid. Throws Error if another rank has aborted.
  virtual bool done(Request request) = 0;
  // For when this rank has failed: ends the others, whose calls throw, or whose processes end when this one does. Any
  // thread.
  virtual void abort() noexcept = 0;
};

// Waiting: a few tries at first, then longer and longer pauses, so that a rank that waits leaves the core to others.
class Backoff {
 public:
  void pause();
  // While others have work for the core: sleeps at once.
  void sleep();
  void reset() { tries_ = sleeps_ = 0; }

 private:
  uint32_t tries_ = 0, sleeps_ = 0;
};

void wait(Communicator& ranks, Communicator::Request request);

// Rank r has the bytes part(r) of `all`; afterwards every rank has all of them. Parts may be empty.
void all_gather(Communicator& ranks, uint32_t tag, std::span<std::byte> all,
                const std::function<Range(size_t rank)>& part);

}  // namespace quern::dist
