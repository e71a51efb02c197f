#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <utility>

#include "core/crc32c.h"
#include "core/error.h"
#include "core/thread_pool.h"
#include "replay/forks.h"
#include "replay/row_copy.h"
#include "replay/snapshot.h"
#include "replay/snapshot_file.h"
#include "replay/turns.h"

namespace quern::replay {
namespace {

// Threads take the next blocks, copy and pack them concurrently, and write them in turn.
class Saver {
 public:
  Saver(const ReplayBuffer& buffer, const std::filesystem::path& path, const SnapshotOptions& options, Window window)
      : buffer_(buffer),
        options_(options),
        window_(window),
        max_rows_(block_rows(buffer.schema())),
        blocks_((window.size() + max_rows_ - 1) / max_rows_),
        info_(info_of(buffer)),
        writer_(path, info_) {}

  SnapshotResult run() {
    const size_t threads = std::clamp<size_t>(options_.threads, 1, std::max<uint64_t>(1, blocks_));
    ThreadPool pool(threads, [this](const Member&) { work(); });
    pool.run(threads);
    buffer_.expect_intact();  // otherwise a good snapshot would be replaced by one of zeros, or of no rows
    const uint64_t skipped = window_.size() - rows_;
    return {rows_, writer_.finish(skipped), skipped};
  }

 private:
  void work() {
    try {
      RowBlock block(buffer_.schema(), info_.kind(), max_rows_);
      BlockCodec codec(options_.acceleration);
      size_t max = 0;
      for (const BlockPart& part : block.parts()) max += BlockCodec::max_packed(max_rows_ * part.row_bytes);
      AlignedBuffer<std::byte> packed(max);
      for (uint64_t b; (b = next_.fetch_add(1, std::memory_order_relaxed)) < blocks_;) {  // one thread per block
        gather(b, block);
        const size_t size = pack(block, codec, packed.data());
        if (!turns_.await(b)) return;
        write(block, {packed.data(), size});
        turns_.pass();
      }
    } catch (...) {
      turns_.stop();
      throw;
    }
  }

  void gather(uint64_t b, RowBlock& block) const {
    const uint64_t begin = window_.begin + b * max_rows_;
    const uint64_t end = std::min<uint64_t>(window_.end, begin + max_rows_);
    block.rows = 0;
    for (uint64_t id = begin; id < end; ++id) {
      if (!buffer_.ring().read(id, [&](uint64_t slot) { copy_row(slot, block); })) continue;
      if (block.rows == 0) block.first_id = id;
      block.gaps()[block.rows] = static_cast<uint32_t>(id - block.first_id - block.rows);
      ++block.rows;
    }
  }

  void copy_row(uint64_t slot, RowBlock& block) const {
    for (size_t c = 0; c < buffer_.schema().columns().size(); ++c) {
      const size_t bytes = block.parts()[block.first_column() + c].row_bytes;
      copy_from_row(block.column(c) + block.rows * bytes, buffer_.stored(c, slot), bytes);
    }
    if (buffer_.tree() != nullptr) block.weights()[block.rows] = weight_in(slot);
    if (buffer_.links() != nullptr) block.places()[block.rows] = place_in(slot);
  }

  // An episode that has begun since the header was written is not part of the snapshot.
  uint64_t place_in(uint64_t slot) const noexcept {
    const uint64_t place = buffer_.links()->load(slot).place;
    return episode_of(place) <= info_.episodes ? place : 0;
  }

  static SnapshotInfo info_of(const ReplayBuffer& buffer) {
    SnapshotInfo info{buffer.schema(), 0, buffer.tree() != nullptr, buffer.capacity(), buffer.options().alpha};
    info.terminal = buffer.options().terminal;
    info.truncated = buffer.options().truncated;
    if (buffer.links() != nullptr) info.episodes = buffer.links()->episodes();
    return info;
  }

  // Clamped: a damaged weight would make a snapshot that no buffer of this size can load.
  uint64_t weight_in(uint64_t slot) const noexcept {
    return std::min(buffer_.tree()->get(slot), largest_weight(buffer_.capacity()));
  }

  static size_t pack(RowBlock& block, BlockCodec& codec, std::byte* out) {
    size_t size = 0;
    for (size_t p = 0; p < block.parts().size(); ++p) {
      size += codec.pack(block.part(p), block.parts()[p].word, out + size);
    }
    return size;
  }

  void write(const RowBlock& block, std::span<const std::byte> packed) {
    if (block.rows == 0) return;
    writer_.write({block.first_id, packed.size(), static_cast<uint32_t>(block.rows), crc32c(packed)}, packed);
    rows_ += block.rows;
  }

  const ReplayBuffer& buffer_;
  const SnapshotOptions options_;
  const Window window_;
  const size_t max_rows_;
  const uint64_t blocks_;
  const SnapshotInfo info_;
  SnapshotWriter writer_;  // used only by the thread whose turn it is, like rows_
  uint64_t rows_ = 0;
  std::atomic<uint64_t> next_{0};
  Turns turns_;
};

}  // namespace

SnapshotResult save_snapshot(const ReplayBuffer& buffer, const std::filesystem::path& path,
                             const SnapshotOptions& options) {
  return Saver(buffer, path, options, buffer.ring().window()).run();
}

struct BackgroundSave::State {
  std::shared_future<SnapshotResult> future;
  uint64_t forks = fork_count();  // when the save was started

  bool inherited() const noexcept { return forks != fork_count(); }
};

BackgroundSave::BackgroundSave(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
BackgroundSave::BackgroundSave(BackgroundSave&& other) noexcept = default;

BackgroundSave& BackgroundSave::operator=(BackgroundSave&& other) noexcept {
  let_go();
  state_ = std::move(other.state_);
  return *this;
}

BackgroundSave::~BackgroundSave() { let_go(); }

// The future joins its thread when it is destroyed. In a child that thread does not exist and the wait would never end,
// so the few bytes of the future are leaked.
void BackgroundSave::let_go() noexcept {
  if (state_ != nullptr && state_->inherited()) static_cast<void>(state_.release());
  state_.reset();
}

bool BackgroundSave::wait_for(double seconds) const {
  if (state_->inherited()) return true;
  return state_->future.wait_for(std::chrono::duration<double>(seconds)) == std::future_status::ready;
}

SnapshotResult BackgroundSave::get() const {
  if (state_->inherited()) {
    throw Error(
        "[snapshot] expected the process that started the save, found a child of fork(), which cannot wait for it");
  }
  return state_->future.get();
}

BackgroundSave save_snapshot_in_background(const ReplayBuffer& buffer, std::filesystem::path path,
                                           const SnapshotOptions& options) {
  watch_forks();
  auto state = std::make_unique<BackgroundSave::State>();
  const auto save = [&buffer, path = std::move(path), options, window = buffer.ring().window()] {
    return Saver(buffer, path, options, window).run();
  };
  state->future = std::async(std::launch::async, save).share();
  return BackgroundSave(std::move(state));
}

}  // namespace quern::replay
