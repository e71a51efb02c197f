// ZIP archives as written and read by NumPy: stored or deflated entries, ZIP64 if sizes need it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/files.h"

namespace quern::replay {

// CRC-32 as in ZIP, continued from `crc` (initially 0).
uint32_t zip_crc(uint32_t crc, std::span<const std::byte> bytes) noexcept;

struct ZipEntry {
  std::string name;
  uint32_t crc = 0;
  uint64_t size = 0;    // of the contents
  uint64_t packed = 0;  // in the archive
  uint64_t offset = 0;  // of its header
  bool deflated = false;
};

// Writes an archive from front to back, with uncompressed entries. Size and checksum are known beforehand, so that
// streaming readers find them too.
class ZipWriter {
 public:
  explicit ZipWriter(FileWriter& file) : file_(file) {}

  // The contents follow by any number of calls of file.write().
  void begin(const std::string& name, uint64_t size, uint32_t crc);
  void finish();

 private:
  FileWriter& file_;
  std::vector<ZipEntry> entries_;
};

// The directory of an archive. `where` is the prefix of every Error message.
class ZipReader {
 public:
  // Error when it is not a ZIP archive, or has entries that are encrypted, compressed by another method or outside the
  // file. Safe for any bytes, which must outlive the reader.
  ZipReader(std::span<const std::byte> bytes, std::string where);

  const std::vector<ZipEntry>& entries() const noexcept { return entries_; }
  const ZipEntry* find(std::string_view name) const noexcept;
  std::span<const std::byte> packed(const ZipEntry& entry) const;
  const std::string& where() const noexcept { return where_; }

 private:
  void read_directory(uint64_t offset, uint64_t size, uint64_t count);

  std::span<const std::byte> bytes_;
  std::string where_;
  std::vector<ZipEntry> entries_;
};

// The contents of one entry from front to back. One thread.
class ZipStream {
 public:
  ZipStream(const ZipReader& archive, const ZipEntry& entry);
  ZipStream(ZipStream&&) noexcept;
  ~ZipStream();

  // Fills `out`. Error when there are fewer bytes, or they cannot be unpacked.
  void read(std::span<std::byte> out);

  // Error unless everything has been read and the checksum is right.
  void finish();

 private:
  struct Inflater;
  void inflate(std::span<std::byte> out);
  [[noreturn]] void fail(const char* what) const;

  std::string where_;
  ZipEntry entry_;
  std::span<const std::byte> rest_;
  std::unique_ptr<Inflater> inflater_;
  uint64_t done_ = 0;
  uint32_t crc_ = 0;
};

}  // namespace quern::replay
