// Looks at buffers without attaching to them: nothing is mapped, written or locked.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "replay/layout.h"
#include "replay/memory.h"

namespace quern::replay {

struct BufferInfo {
  Storage storage;
  std::string path;
  uint64_t bytes = 0;
  std::optional<Description> description = {};  // nullopt if it cannot be used
  std::string problem = {};                     // and why not
  uint64_t rows = 0;
  uint64_t added = 0;
  uint64_t sampled = 0;
  uint64_t created = 0;  // seconds since 1970; 0 if not known
  size_t handles = 0;    // buffer objects that are open on it, in all processes
};

// Error when it does not exist, or belongs to another user; a damaged one, or one of another version, has a `problem`.
BufferInfo inspect(const Storage& storage);

// All buffers of this user in shared memory, by name.
std::vector<BufferInfo> list_shared();

// Removes the name (the memory exists as long as a process has it mapped). False if it did not exist. Error for a file
// that is not a replay buffer; one of another version, or a damaged one, is removed.
bool remove_buffer(const Storage& storage);

}  // namespace quern::replay
