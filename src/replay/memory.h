// One piece of memory: private, shared under a name, or a mapped file.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "core/aligned_buffer.h"
#include "core/mapping_guard.h"

namespace quern::replay {

// Where the rows lie.
struct Storage {
  enum class Kind { kPrivate, kShared, kFile };
  Kind kind = Kind::kPrivate;
  std::string name;  // kShared: like "actors"; kFile: a path

  static Storage in_private() { return {}; }
  static Storage in_shared(std::string name) { return {Kind::kShared, std::move(name)}; }
  static Storage in_file(std::string path) { return {Kind::kFile, std::move(path)}; }

  // For messages: "[replay] private memory", "[replay] shared memory 'actors'", "[replay] file 'a/b'".
  std::string text() const;

  // What the system knows it as: /dev/shm/quern-NAME, or the path. Error for private memory, an empty name, and one of
  // shared memory that has a '/' or more than 200 bytes.
  std::string path() const;
};

// Owns the mapping, and the descriptor where there is one. Move-only.
//
// Shared memory and files are for the processes of one user. Others can make files in /dev/shm too, so what is opened
// must be a regular file and no symbolic link, must belong to the effective user of this process (also for root), and
// must not be writable by its group or by everyone. The check is on the open descriptor, and so is everything after it.
class Memory {
 public:
  // New memory, all zeros, that nobody else can see before publish(): a process that dies in between leaves nothing.
  // With `prefault` all of it is there already, by several threads; private memory has huge pages where the system
  // allows it; files never have it, since all of their pages would have to be written to disk.
  // Error when there is not enough, or when the name is taken. Files can be read by others as the umask says, and never
  // be written by them. Where the file system knows no files without a name, the file has a temporary one beside it
  // until publish(), and what killed processes left there is removed first.
  static Memory create(const Storage& storage, uint64_t bytes, bool prefault);

  // Gives it its name. Error when somebody else has taken it meanwhile. Nothing to do for private memory.
  void publish();

  // What somebody published, without a mapping yet: the caller looks at head() first. Waits up to `patience` seconds
  // for it to appear. Error when it is not ours alone to write, as above.
  static Memory open(const Storage& storage, double patience);
  uint64_t file_bytes() const noexcept { return file_bytes_; }
  std::string head(uint64_t offset, uint64_t bytes) const;  // fewer where the file ends
  void map(bool prefault);

  // Error when somebody has cut the file short since it was mapped, or its disk has failed: the mapping is all zeros
  // then. Whoever has read or written it calls this before it believes the result. A load where all is well.
  void expect_intact() const {
    if (guard_.lost()) lost();
  }
  const MappingGuard& guard() const noexcept { return guard_; }

  // Removes the name; the memory lives on while somebody has it mapped. False if there was none.
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
  std::string temporary_;  // the name it has until publish() where the file system knows no files without one
  int descriptor_ = -1;
  uint64_t file_bytes_ = 0;
  AlignedBuffer<std::byte> private_;  // empty for what is mapped
  std::byte* data_ = nullptr;
  uint64_t mapped_ = 0;
  dev_t device_ = 0;  // of the file that is mapped, with inode_
  ino_t inode_ = 0;
  MappingGuard guard_;  // of data_, unless it is private; gone before that is unmapped
};

}  // namespace quern::replay
