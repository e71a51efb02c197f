#include <algorithm>
#include <atomic>
#include <vector>

#include "core/error.h"
#include "core/thread_pool.h"
#include "replay/snapshot.h"
#include "replay/snapshot_file.h"
#include "replay/turns.h"

namespace quern::replay {
namespace {

// Threads take the next blocks and unpack them concurrently; the ids of their rows are reserved in turn, which
// preserves the order; then all copy to the buffer concurrently. Ids are reserved only after unpacking, so that a block
// that cannot be unpacked leaves no gap.
class Loader {
 public:
  Loader(ReplayBuffer& buffer, const SnapshotReader& reader, const std::filesystem::path& path)
      : buffer_(buffer),
        reader_(reader),
        path_(path),
        skipped_(reader.info().rows - std::min(reader.info().rows, buffer.capacity())),
        weighted_(reader.info().prioritised && buffer.tree() != nullptr),
        first_episode_(reader.info().kind().episodes && buffer.links() != nullptr
                           ? buffer.links()->new_episodes(reader.info().episodes)
                           : 0) {
    uint64_t begin = 0;
    for (const BlockEntry& block : reader.blocks()) {
      begins_.push_back(begin);
      begin += block.rows;
      if (begin <= skipped_) ++first_;
    }
  }

  // Unpacks all weights, 8 bytes per row.
  void check_weights() const {
    if (!weighted_) return;
    BlockCodec codec;
    std::vector<uint64_t> weights(reader_.max_rows());
    for (size_t b = first_; b < reader_.blocks().size(); ++b) {
      const std::span<uint64_t> here = std::span(weights).first(reader_.blocks()[b].rows);
      reader_.unpack_part(b, 0, codec, std::as_writable_bytes(here));
      convert(here);
    }
  }

  SnapshotResult run(size_t threads) {
    ThreadPool pool(std::clamp<size_t>(threads, 1, std::max<size_t>(1, reader_.blocks().size())),
                    [this](const Member&) { work(); });
    pool.run(pool.threads());
    if (first_episode_ != 0 && first_id_ != kNoRow) buffer_.connect_rows(first_id_, buffer_.ring().window().end);
    return {reader_.info().rows - skipped_, reader_.info().bytes, skipped_};
  }

 private:
  void work() {
    try {
      RowBlock block(reader_.info().schema, reader_.info().kind(), reader_.max_rows());
      BlockCodec codec;
      for (size_t b; (b = first_ + next_.fetch_add(1, std::memory_order_relaxed)) < reader_.blocks().size();) {
        reader_.unpack(b, codec, block);
        if (weighted_) convert({block.weights(), block.rows});
        if (first_episode_ != 0) renumber({block.places(), block.rows});
        const size_t left_out = skipped_ - std::min(skipped_, begins_[b]);  // of the first block
        if (!turns_.await(b - first_)) return;
        const uint64_t id = buffer_.ring().reserve(block.rows - left_out);
        if (first_id_ == kNoRow) first_id_ = id;
        turns_.pass();
        put(block, left_out, id);
      }
    } catch (...) {
      turns_.stop();
      throw;
    }
  }

  void put(RowBlock& block, size_t left_out, uint64_t id) {
    std::vector<const std::byte*> columns;
    for (size_t c = 0; c < buffer_.schema().columns().size(); ++c) {
      columns.push_back(block.column(c) + left_out * block.parts()[block.first_column() + c].row_bytes);
    }
    const size_t rows = block.rows - left_out;
    const auto part = [&](bool wanted, const uint64_t* numbers) {
      return wanted ? std::span<const uint64_t>(numbers + left_out, rows) : std::span<const uint64_t>();
    };
    buffer_.put_stored(id, columns, rows, part(weighted_, block.weights()), part(first_episode_ != 0, block.places()));
  }

  // The episodes of the snapshot become those from first_episode_ on, which no other row has. A number that the header
  // rules out is that of a forged file; its row is on its own.
  void renumber(std::span<uint64_t> places) const {
    for (uint64_t& place : places) {
      const uint64_t episode = episode_of(place);
      const bool valid = episode > 0 && episode <= reader_.info().episodes;
      place = valid ? (first_episode_ + episode - 1) << kStepBits | step_of(place) : 0;
    }
  }

  // Converts from the units of the snapshot to those of the buffer. Error when one is too large for the buffer's sum.
  void convert(std::span<uint64_t> weights) const {
    const double saved = reader_.info().alpha, ours = buffer_.options().alpha;
    const uint64_t largest = largest_weight(buffer_.capacity());
    for (uint64_t& weight : weights) {
      if (saved != ours) weight = weight_of(priority_of(weight, saved), ours, buffer_.capacity());
      if (weight > largest) {
        throw Error("[snapshot] {}: expected weights of at most {} in a buffer of {} rows, found {}", path_.native(),
                    largest, buffer_.capacity(), weight);
      }
    }
  }

  ReplayBuffer& buffer_;
  const SnapshotReader& reader_;
  const std::filesystem::path& path_;
  const uint64_t skipped_;  // the oldest rows, which do not fit
  const bool weighted_;
  const uint64_t first_episode_;  // 0: episodes are not loaded
  uint64_t first_id_ = kNoRow;    // of the first loaded row; set by the thread whose turn it is
  std::vector<uint64_t> begins_;  // rows before each block
  size_t first_ = 0;              // the first block with a row to load
  std::atomic<size_t> next_{0};
  Turns turns_;
};

}  // namespace

SnapshotResult load_snapshot(ReplayBuffer& buffer, const std::filesystem::path& path, const SnapshotOptions& options) {
  buffer.expect_own_process("load");
  const SnapshotReader reader(path);
  buffer.schema().expect_same(reader.info().schema, "[snapshot] " + path.native());
  reader.verify(options.threads);
  Loader loader(buffer, reader, path);
  loader.check_weights();
  const SnapshotResult result = loader.run(options.threads);
  buffer.expect_intact();
  return result;
}

SnapshotInfo snapshot_info(const std::filesystem::path& path) { return SnapshotReader(path).info(); }

ReplayBuffer from_snapshot(const std::filesystem::path& path, const Storage& storage, uint64_t capacity,
                           const SnapshotOptions& options) {
  const SnapshotInfo info = snapshot_info(path);
  ReplayBuffer buffer = ReplayBuffer::create(info.schema,
                                             {.capacity = capacity > 0 ? capacity : info.capacity,
                                              .prioritised = info.prioritised,
                                              .alpha = info.alpha,
                                              .terminal = info.terminal,
                                              .truncated = info.truncated},
                                             storage);
  try {
    load_snapshot(buffer, path, options);
  } catch (...) {
    if (storage.kind != Storage::Kind::kPrivate) ReplayBuffer::remove(storage);  // created by this call
    throw;
  }
  return buffer;
}

}  // namespace quern::replay
