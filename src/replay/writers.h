// Identifies the processes that write to one buffer, and tells which of them are still alive.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "replay/forks.h"
#include "replay/writer_locks.h"

namespace quern::replay {

// A process that writes holds a lock on one byte, far beyond the end of the buffer's file or shared memory: the number
// of that byte is its index, which is stored in the words of the slots it is writing. The kernel releases the lock
// however the process ends, so any process can check whether an index is alive, without the problems of process ids
// that are reused or that differ between containers.
//
// The lock belongs to an open file description of its own, which fork() would share with the child: then the death of
// the parent would go unnoticed. So a child first closes it (pthread_atfork), and joins under its own index when it
// writes for the first time. A child may close all inherited descriptors before that, as daemons do: it then joins by
// name. The program must not close these descriptors after the process has joined: a live writer would be taken for
// dead. Before each use, a descriptor is checked to still refer to the buffer's file.
class Writers {
 public:
  static constexpr uint16_t kMax = kMaxWriters;

  // Joins. `descriptor` is owned by the caller and must stay open; `path` names the same file until it is removed;
  // `where` is the prefix of messages. `words` are those of the slots: words that dead processes left busy are cleared.
  // Error when there are already kMax processes, or no more descriptors.
  Writers(int descriptor, std::string path, std::string where, std::span<std::atomic<uint64_t>> words);
  Writers(const Writers&) = delete;
  Writers& operator=(const Writers&) = delete;
  ~Writers();

  // The index of this process. One load, except for the first call after fork(), which takes a lock and may throw the
  // same errors as the constructor.
  uint16_t me() {
    const uint64_t seat = seat_.load(std::memory_order_acquire);
    return seat >> 16 == generation() ? static_cast<uint16_t>(seat) : join();
  }

  // Call me() first. Two system calls: for the rare case that a slot is busy. Error when other code has closed the
  // descriptors.
  bool is_dead(uint16_t writer) const;

  // Buffer objects, in all processes, that have an index now. A system call for each. Error as in is_dead().
  size_t count();

 private:
  static void before_fork();
  static void after_fork_in_parent();
  static void after_fork_in_child();

  uint16_t join();
  void expect_lock() const;
  int open_again() const;
  uint16_t take_index(int opened) const;
  void empty_abandoned(uint16_t mine);
  bool is_ours(int descriptor) const noexcept;

  static uint64_t generation() noexcept { return fork_count() + 1; }  // never 0, which means no seat

  int descriptor_;
  dev_t device_ = 0;  // of the file, with inode_
  ino_t inode_ = 0;
  int lock_ = -1;  // the descriptor that holds the lock; -1 in a child that has not joined
  std::string path_, where_;
  std::span<std::atomic<uint64_t>> words_;
  std::atomic<uint64_t> seat_{0};  // generation() when it was taken << 16 | index
};

}  // namespace quern::replay
