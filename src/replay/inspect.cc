#include "replay/inspect.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "core/error.h"
#include "replay/ring.h"
#include "replay/writer_locks.h"

namespace quern::replay {
namespace {

namespace fs = std::filesystem;

// Error when the path is something else, which the caller did not mean to delete.
void expect_buffer(const Storage& storage) {
  const fs::path path = storage.path();
  std::error_code ignored;
  const fs::file_status status = fs::symlink_status(path, ignored);
  if (!fs::exists(status)) return;
  if (storage.kind == Storage::Kind::kShared && fs::is_regular_file(status) && fs::file_size(path, ignored) == 0) {
    return;  // truncated to nothing: the name shows that it was a buffer, and there is nothing to lose
  }
  std::string start(64, '\0');
  if (fs::is_regular_file(status)) std::ifstream(path, std::ios::binary).read(start.data(), 64);
  if (!starts_as_buffer(start)) {
    throw Error("{}: cannot remove: expected a replay buffer, found something else", storage.text());
  }
}

// Reads the counters as they are in the file, one after another: they may change meanwhile.
void read_counters(const Memory& memory, BufferInfo& info) {
  const Layout layout(info.description->schema, info.description->options);
  const std::string bytes = memory.head(layout.counters, kCounters * sizeof(Counter));
  const auto number = [&](CounterIndex counter, size_t place) {
    uint64_t value = 0;
    const size_t offset = static_cast<size_t>(counter) * sizeof(Counter) + place * sizeof value;
    if (offset + sizeof value <= bytes.size()) std::memcpy(&value, bytes.data() + offset, sizeof value);
    return value;
  };
  info.added = number(CounterIndex::kPublished, 0);
  const uint64_t cleared = number(CounterIndex::kPublished, 1);
  info.rows = std::min(info.added - std::min(info.added, cleared), info.description->options.capacity);
  info.sampled = number(CounterIndex::kSamples, 1);
  info.created = number(CounterIndex::kReserved, 1);
}

}  // namespace

BufferInfo inspect(const Storage& storage) {
  const Memory memory = Memory::open(storage, 0);
  BufferInfo info{.storage = storage, .path = storage.path(), .bytes = memory.file_bytes()};
  info.handles = count_locks(memory.descriptor());
  try {
    info.description = read_header(memory);
    read_counters(memory, info);
  } catch (const Error& error) {
    info.problem = error.what();
  }
  return info;
}

std::vector<BufferInfo> list_shared() {
  std::vector<BufferInfo> found;
  const fs::path pattern = Storage::in_shared("x").path();  // FOLDER/quern-x
  const std::string prefix = pattern.filename().string().substr(0, pattern.filename().string().size() - 1);
  std::error_code stopped;
  for (const fs::directory_entry& entry : fs::directory_iterator(pattern.parent_path(), stopped)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(prefix) || name.size() == prefix.size()) continue;
    try {
      BufferInfo info = inspect(Storage::in_shared(name.substr(prefix.size())));
      std::string start(64, '\0');
      std::ifstream(entry.path(), std::ios::binary).read(start.data(), 64);
      if (starts_as_buffer(start)) found.push_back(std::move(info));
    } catch (const Error&) {  // of another user, not a file, or removed meanwhile
    }
  }
  std::sort(found.begin(), found.end(),
            [](const BufferInfo& a, const BufferInfo& b) { return a.storage.name < b.storage.name; });
  return found;
}

bool remove_buffer(const Storage& storage) {
  expect_buffer(storage);
  return Memory::remove(storage);
}

}  // namespace quern::replay
