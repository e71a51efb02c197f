// Which process is which among those that write to one buffer, and which of them is still alive.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "replay/forks.h"

namespace quern::replay {

// A process that writes holds a lock on one byte, far beyond the end of the buffer's file or shared memory: the number
// of that byte is its index, and stands in the words of the slots it is writing. The kernel gives the lock back however
// the process ends, so that anybody can ask whether an index is alive, with no trouble from process ids that are used
// again or that mean something else in a container.
//
// The lock belongs to an open file description of its own, which fork() would share with the child: then the death of
// the parent would go unnoticed. So a child closes it first of all (pthread_atfork), and joins under an index of its
// own when it writes for the first time. A child may close all descriptors that it inherited before that, as daemons
// do: it then joins by name. What must not happen is that somebody closes our descriptors after we have joined: a live
// writer would be taken for dead. Whether a number still stands for our file is asked before each use.
class Writers {
 public:
  static constexpr uint16_t kMax = 4096;  // processes that write at once

  // Joins. `descriptor` stays the caller's, and open; `path` names the same file as long as nobody removes it; `where`
  // starts messages. `words` are those of the slots: the ones that dead processes left busy are emptied. Error when
  // there are kMax processes already, or no more descriptors.
  Writers(int descriptor, std::string path, std::string where, std::span<std::atomic<uint64_t>> words);
  Writers(const Writers&) = delete;
  Writers& operator=(const Writers&) = delete;
  ~Writers();

  // The index of this process. One load, except for the first call after fork(), which may throw what the constructor
  // throws, and takes a lock.
  uint16_t me() {
    const uint64_t seat = seat_.load(std::memory_order_acquire);
    return seat >> 16 == generation() ? static_cast<uint16_t>(seat) : join();
  }

  // For whoever has called me(). Two system calls: for the rare case that somebody is in the way. Error when
  // somebody else has closed our descriptors.
  bool is_dead(uint16_t writer) const;

 private:
  static void before_fork();
  static void after_fork_in_parent();
  static void after_fork_in_child();

  uint16_t join();
  int open_again() const;
  uint16_t take_index(int opened) const;
  void empty_abandoned(uint16_t mine);
  bool is_ours(int descriptor) const noexcept;

  static uint64_t generation() noexcept { return fork_count() + 1; }  // never 0, which stands for no seat

  int descriptor_;
  dev_t device_ = 0;  // of the file, with inode_
  ino_t inode_ = 0;
  int lock_ = -1;  // the descriptor that holds it; -1 in a child that has not joined
  std::string path_, where_;
  std::span<std::atomic<uint64_t>> words_;
  std::atomic<uint64_t> seat_{0};  // generation() when it was taken << 16 | index
};

}  // namespace quern::replay
