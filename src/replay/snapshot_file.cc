#include "replay/snapshot_file.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <system_error>

#include "core/crc32c.h"
#include "core/error.h"
#include "core/thread_pool.h"

namespace quern::replay {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::array<char, 8> kMagic = {'Q', 'R', 'N', 'S', 'N', 'A', 'P', '\n'};
constexpr uint32_t kVersion = 1;
constexpr uint32_t kEpisodesVersion = 2;  // with an EpisodeHeader after the header
constexpr uint32_t kPrioritised = 1;
constexpr uint64_t kMaxId = uint64_t{1} << 62;       // adding a block's rows does not overflow
constexpr size_t kMaxBlockBytes = size_t{64} << 20;  // unless a single row is larger

// Followed by the schema's text and the CRC-32C of both.
struct Header {
  std::array<char, 8> magic = kMagic;
  uint32_t version = kVersion;
  uint32_t flags = 0;
  uint64_t capacity = 0;
  double alpha = 0;
  uint32_t max_rows = 0;
  uint32_t schema_bytes = 0;
};
static_assert(sizeof(Header) == 40);

struct EpisodeHeader {
  uint64_t episodes = 0;   // no row has a higher number of its episode
  uint32_t terminal = 0;   // number of the column, from 1; 0 for none
  uint32_t truncated = 0;  // the same; at least one of them is above 0
};
static_assert(sizeof(EpisodeHeader) == 16);

uint32_t column_number(const Schema& schema, const std::string& name) {
  return name.empty() ? 0 : static_cast<uint32_t>(schema.index_of(name) + 1);
}

// The last bytes of the file, after the index.
struct Tail {
  uint64_t blocks = 0;
  uint64_t rows = 0;
  uint64_t skipped = 0;
  uint32_t header_crc = 0;  // ties both ends together: blocks of one file with the schema of another are not a snapshot
  uint32_t crc = 0;         // of the index and of the fields above
};
static_assert(sizeof(Tail) == 32);

template <typename T>
std::span<const std::byte> bytes_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

std::string header_text(const SnapshotInfo& info) {
  const std::string schema = info.schema.text();
  Header header;
  header.flags = info.prioritised ? kPrioritised : 0;
  header.capacity = info.capacity;
  header.alpha = info.prioritised ? info.alpha : 0;
  header.max_rows = static_cast<uint32_t>(block_rows(info.schema));
  header.schema_bytes = static_cast<uint32_t>(schema.size());
  std::string text(sizeof header, '\0');
  if (info.kind().episodes) header.version = kEpisodesVersion;
  std::memcpy(text.data(), &header, sizeof header);
  if (info.kind().episodes) {
    const EpisodeHeader more = {info.episodes, column_number(info.schema, info.terminal),
                                column_number(info.schema, info.truncated)};
    text.append(reinterpret_cast<const char*>(&more), sizeof more);
  }
  text += schema;
  const uint32_t crc = crc32c(text);
  return text.append(reinterpret_cast<const char*>(&crc), sizeof crc);
}

uint32_t crc_at_end(std::string_view header) {
  uint32_t crc;
  std::memcpy(&crc, header.data() + header.size() - sizeof crc, sizeof crc);
  return crc;
}

}  // namespace

SnapshotWriter::SnapshotWriter(const std::filesystem::path& path, const SnapshotInfo& info)
    : file_((remove_leftovers_of(path), path)) {
  const std::string header = header_text(info);
  header_crc_ = crc_at_end(header);
  file_.writer().write(header);
}

void SnapshotWriter::write(const BlockEntry& entry, std::span<const std::byte> packed) {
  file_.writer().write(packed);
  index_.push_back(entry);
}

uint64_t SnapshotWriter::finish(uint64_t skipped) {
  Tail tail;
  tail.blocks = index_.size();
  for (const BlockEntry& entry : index_) tail.rows += entry.rows;
  tail.skipped = skipped;
  tail.header_crc = header_crc_;
  std::vector<std::byte> end;
  const auto index = std::as_bytes(std::span(index_));
  const auto rest = bytes_of(tail).first(offsetof(Tail, crc));
  end.insert(end.end(), index.begin(), index.end());
  end.insert(end.end(), rest.begin(), rest.end());
  tail.crc = crc32c(end);
  end.insert(end.end(), bytes_of(tail.crc).begin(), bytes_of(tail.crc).end());
  file_.writer().write(end);
  const uint64_t bytes = file_.writer().written();
  file_.commit();
  return bytes;
}

SnapshotReader::SnapshotReader(const std::filesystem::path& path)
    : path_(path),
      file_(path),
      bytes_(static_cast<uint64_t>(regular_file_status(file_, path).st_size)),
      info_(read_header()) {
  parts_ = block_parts(info_.schema, info_.kind());
  read_index();
}

void SnapshotReader::fail(const std::string& expected, const std::string& found) const {
  throw Error("[snapshot] {}: expected {}, found {}", path_.native(), expected, found);
}

void SnapshotReader::bad_block(size_t block) const {
  throw Error("[snapshot] {}: block {} of {} is damaged; load an older snapshot", path_.native(), block, index_.size());
}

void SnapshotReader::read(uint64_t offset, std::span<std::byte> out) const {
  for (size_t done = 0; done < out.size();) {
    const ssize_t got = ::pread(file_.get(), out.data() + done, out.size() - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw Error("[snapshot] {}: cannot read: {}", path_.native(), std::generic_category().message(errno));
    if (got == 0) {  // queries the size now: another thread may have read a block farther past the end
      fail(fmt::format("{} bytes, as when it was opened", bytes_),
           std::to_string(regular_file_status(file_, path_).st_size));
    }
    done += static_cast<size_t>(got);
  }
}

SnapshotInfo SnapshotReader::read_header() {
  Header header;
  if (bytes_ >= sizeof header) read(0, std::as_writable_bytes(std::span(&header, 1)));
  if (bytes_ < sizeof header || header.magic != kMagic) fail("a snapshot of a replay buffer", "another file");
  if (header.version != kVersion && header.version != kEpisodesVersion) {
    fail(fmt::format("version {} or {}", kVersion, kEpisodesVersion), std::to_string(header.version));
  }
  if (header.schema_bytes > kMaxSchemaText) {
    fail(fmt::format("at most {} bytes of schema", kMaxSchemaText), std::to_string(header.schema_bytes));
  }
  const size_t schema_begin = sizeof header + (header.version == kEpisodesVersion ? sizeof(EpisodeHeader) : 0);
  header_bytes_ = schema_begin + size_t{header.schema_bytes} + sizeof(uint32_t);
  if (header_bytes_ > bytes_) fail(fmt::format("at least {} bytes", header_bytes_), std::to_string(bytes_));
  std::string all(header_bytes_, '\0');
  std::memcpy(all.data(), &header, sizeof header);  // not read again: the file may be changing
  read(sizeof header, std::as_writable_bytes(std::span(all)).subspan(sizeof header));
  header_crc_ = crc_at_end(all);
  if (crc32c(std::string_view(all).substr(0, header_bytes_ - sizeof(uint32_t))) != header_crc_) {
    fail("a header with a valid checksum", "a damaged one");
  }
  if (header.flags > kPrioritised) fail("flags 0 or 1", std::to_string(header.flags));
  if (!(header.alpha >= 0 && std::isfinite(header.alpha))) {  // the range of check_options()
    fail("an alpha of 0 or more", fmt::format("{}", header.alpha));
  }
  Schema schema = Schema::from_text(std::string_view(all).substr(schema_begin, header.schema_bytes));
  const size_t row = schema.stored_bytes();
  max_rows_ = header.max_rows;
  if (max_rows_ == 0 || max_rows_ > std::max<size_t>(1, kMaxBlockBytes / row)) {
    fail(fmt::format("blocks of at most {} rows", std::max<size_t>(1, kMaxBlockBytes / row)),
         std::to_string(max_rows_));
  }
  SnapshotInfo info{std::move(schema), 0, header.flags == kPrioritised, header.capacity, header.alpha, 0, bytes_};
  if (header.version == kVersion) return info;
  EpisodeHeader more;
  std::memcpy(&more, all.data() + sizeof header, sizeof more);
  const size_t columns = info.schema.columns().size();
  if (more.terminal > columns || more.truncated > columns || more.terminal + more.truncated == 0 ||
      more.episodes >= kMaxEpisodes) {
    fail(fmt::format("columns of episode ends up to {} and fewer than {} episodes", columns, kMaxEpisodes),
         fmt::format("{} and {}, {} episodes", more.terminal, more.truncated, more.episodes));
  }
  if (more.terminal > 0) info.terminal = info.schema.columns()[more.terminal - 1].name;
  if (more.truncated > 0) info.truncated = info.schema.columns()[more.truncated - 1].name;
  info.episodes = more.episodes;
  return info;
}

void SnapshotReader::read_index() {
  const uint64_t rest = bytes_ - header_bytes_;
  Tail tail;
  if (rest < sizeof tail) fail("blocks and an index", "a truncated file");
  read(bytes_ - sizeof tail, std::as_writable_bytes(std::span(&tail, 1)));
  const uint64_t room = rest - sizeof tail;
  if (tail.blocks > room / sizeof(BlockEntry)) fail("an index at the end", "a damaged or truncated file");
  const size_t index_bytes = tail.blocks * sizeof(BlockEntry);
  std::vector<std::byte> end(index_bytes + offsetof(Tail, crc));
  read(bytes_ - sizeof tail - index_bytes, std::span(end).first(index_bytes));
  std::memcpy(end.data() + index_bytes, &tail, offsetof(Tail, crc));
  if (tail.header_crc != header_crc_ || tail.crc != crc32c(end)) {
    fail("an index with its checksum at the end", "a damaged or truncated file");
  }
  index_.resize(tail.blocks);
  if (!index_.empty()) std::memcpy(index_.data(), end.data(), index_bytes);
  check_index(room - index_bytes, tail.rows);
  info_.rows = tail.rows;
  info_.skipped = tail.skipped;
}

// The checksum was right, so this only fails for a forged file.
void SnapshotReader::check_index(uint64_t bytes, uint64_t rows) {
  uint64_t offset = 0, counted = 0, next_id = 0;
  for (const BlockEntry& entry : index_) {
    if (entry.rows == 0 || entry.rows > max_rows_ || entry.bytes > bytes - offset ||
        entry.bytes > max_packed(entry.rows) || entry.first_id < next_id || entry.first_id > kMaxId) {
      fail("a valid index", "an inconsistent one");
    }
    offsets_.push_back(header_bytes_ + offset);
    offset += entry.bytes;
    counted += entry.rows;
    next_id = entry.first_id + entry.rows;
  }
  if (offset != bytes) fail(fmt::format("{} bytes of blocks", offset), std::to_string(bytes));
  if (counted != rows) fail(fmt::format("{} rows", rows), std::to_string(counted));
}

// Max size of a block of this many rows, which bounds the memory that a forged file can make the reader allocate.
uint64_t SnapshotReader::max_packed(size_t rows) const {
  uint64_t bytes = 0;
  for (const BlockPart& part : parts_) bytes += BlockCodec::max_packed(rows * part.row_bytes);
  return bytes;
}

std::span<const std::byte> SnapshotReader::packed(size_t block, BlockCodec& codec) const {
  const std::span<std::byte> room = codec.room(index_[block].bytes);
  read(offsets_[block], room);
  if (crc32c(room) != index_[block].crc) bad_block(block);
  return room;
}

void SnapshotReader::verify(size_t threads) const {
  std::atomic<size_t> next{0};
  ThreadPool pool(std::clamp<size_t>(threads, 1, std::max<size_t>(1, index_.size())), [&](const Member&) {
    BlockCodec codec;
    for (size_t b; (b = next.fetch_add(1, std::memory_order_relaxed)) < index_.size();) {  // one thread per block
      static_cast<void>(packed(b, codec));
    }
  });
  pool.run(pool.threads());
}

// Reads the headers of the pieces before the part, and then only the part.
void SnapshotReader::unpack_part(size_t block, size_t part, BlockCodec& codec, std::span<std::byte> out) const {
  uint64_t offset = offsets_[block], begin = offset;
  const uint64_t end = offset + index_[block].bytes;
  for (size_t p = 0; p <= part; ++p) {
    begin = offset;
    for (size_t left = BlockCodec::pieces(index_[block].rows * parts_[p].row_bytes); left > 0; --left) {
      std::array<std::byte, BlockCodec::kPieceHeader> header;
      if (end - offset < header.size()) bad_block(block);
      read(offset, header);
      const size_t bytes = BlockCodec::piece_bytes(header);
      if (end - offset < bytes) bad_block(block);
      offset += bytes;
    }
  }
  const std::span<std::byte> room = codec.room(offset - begin);
  read(begin, room);
  std::span<const std::byte> rest = room;
  if (!codec.unpack(rest, parts_[part].word, out)) bad_block(block);
}

void SnapshotReader::unpack(size_t block, BlockCodec& codec, RowBlock& out) const {
  std::span<const std::byte> rest = packed(block, codec);
  out.rows = index_[block].rows;
  out.first_id = index_[block].first_id;
  const size_t gaps = out.kind().gaps();
  for (size_t p = 0; p < parts_.size(); ++p) {
    const bool good =
        p == gaps ? BlockCodec::skip(rest, out.part(p).size()) : codec.unpack(rest, parts_[p].word, out.part(p));
    if (!good) bad_block(block);
  }
  if (!rest.empty()) bad_block(block);
}

}  // namespace quern::replay
