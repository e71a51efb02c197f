// A block of memory: private, shared under a name, or a mapped file.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "core/aligned_buffer.h"
#include "core/mapping_guard.h"

namespace quern::replay {

// Where the rows are stored.
struct Storage {
  enum class Kind { kPrivate, kShared, kFile };
  Kind kind = Kind::kPrivate;
  std::string name;  // kShared: like "actors"; kFile: a path

  static Storage in_private() { return {}; }
  static Storage in_shared(std::string name) { return {Kind::kShared, std::move(name)}; }
  static Storage in_file(std::string path) { return {Kind::kFile, std::move(path)}; }

  // For messages: "[replay] private memory", "[replay] shared memory 'actors'", "[replay] file 'a/b'".
  std::string text() const;

  // The path in the file system: /dev/shm/quern-NAME, or the file's path. Error for private memory, an empty name, and
  // a shared memory name that contains '/' or has more than 200 bytes.
  std::string path() const;
};

// Owns the mapping and the descriptor, if any. Move-only.
//
// Shared memory and files are for the processes of one user. Other users can create files in /dev/shm too, so an opened
// file must be a regular file and not a symbolic link, must belong to the effective user of this process (also for
// root), and must not be writable by its group or by others. The check and all later operations use the open
// descriptor.
class Memory {
 public:
  // New memory, all zeros, invisible to other processes until publish(): a process that dies before that leaves nothing
  // behind. With `prefault`, several threads touch all pages now; private memory uses huge pages if the system allows
  // it. Files are never prefaulted, since all of their pages would have to be written to disk.
  // Error when there is not enough memory, or when the name is taken. The umask decides whether others can read files;
  // they can never write them. If the file system does not support unnamed files, the file has a temporary name next
  // to the final one until publish(), and leftovers of killed processes are removed first.
  static Memory create(const Storage& storage, uint64_t bytes, bool prefault);

  // Gives the memory its name. Error when the name has been taken meanwhile. Does nothing for private memory.
  void publish();

  // Opens published memory without mapping it yet: the caller checks head() first. Waits up to `patience` seconds for
  // it to appear. Error if other users can write it, as above.
  static Memory open(const Storage& storage, double patience);
  uint64_t file_bytes() const noexcept { return file_bytes_; }
  std::string head(uint64_t offset, uint64_t bytes) const;  // fewer at the end of the file
  void map(bool prefault);

  // Error if the file has been truncated since it was mapped, or its disk has failed: the mapping is then all zeros.
  // Call this after reading or writing, before relying on the result. Costs one load in the normal case.
  void expect_intact() const {
    if (guard_.lost()) lost();
  }
  const MappingGuard& guard() const noexcept { return guard_; }

  // Removes the name; the memory exists as long as a process has it mapped. False if it did not exist.
  static bool remove(const Storage& storage);

  Memory(Memory&& other) noexcept;
  Memory& operator=(Memory&& other) = delete;
  ~Memory();

  std::byte* data() const noexcept { return data_; }
  int descriptor() const noexcept { return descriptor_; }  // -1 for private memory
  const Storage& storage() const noexcept { return storage_; }

 private:
  explicit Memory(Storage storage) : storage_(std::move(storage)) {}
  void map_private(uint64_t bytes);
  void open_unnamed();
  void open_temporary();
  [[noreturn]] void lost() const;
  void map_file();
  void prefault() const;
  void close_descriptor() noexcept;

  Storage storage_;
  std::string temporary_;  // the name until publish() if the file system does not support unnamed files
  int descriptor_ = -1;
  uint64_t file_bytes_ = 0;
  AlignedBuffer<std::byte> private_;  // empty if mapped
  std::byte* data_ = nullptr;
  uint64_t mapped_ = 0;
  dev_t device_ = 0;  // of the mapped file, with inode_
  ino_t inode_ = 0;
  MappingGuard guard_;  // of data_, unless private; destroyed before data_ is unmapped
};

}  // namespace quern::replay
