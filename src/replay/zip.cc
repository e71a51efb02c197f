#include "replay/zip.h"

#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/error.h"

namespace quern::replay {
namespace {

constexpr uint32_t kLocal = 0x04034B50;
constexpr uint32_t kCentral = 0x02014B50;
constexpr uint32_t kEnd = 0x06054B50;
constexpr uint32_t kEnd64 = 0x06064B50;
constexpr uint32_t kLocator64 = 0x07064B50;
constexpr uint32_t kLarge = 0xFFFFFFFF;  // the actual number is in the ZIP64 field
constexpr uint16_t kZip64 = 1;
constexpr uint16_t kEncrypted = 1;
constexpr size_t kLocalBytes = 30, kCentralBytes = 46, kEndBytes = 22, kLocatorBytes = 20, kEnd64Bytes = 56;

// A sequence of little-endian numbers.
class Fields {
 public:
  template <typename T>
  Fields& add(T value) {
    text_.append(reinterpret_cast<const char*>(&value), sizeof value);
    return *this;
  }
  Fields& add(const std::string& text) {
    text_ += text;
    return *this;
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

template <typename T>
T number_at(std::span<const std::byte> bytes, uint64_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

bool fits(std::span<const std::byte> bytes, uint64_t at, uint64_t size) {
  return at <= bytes.size() && size <= bytes.size() - at;
}

uint32_t capped(uint64_t value) { return static_cast<uint32_t>(std::min<uint64_t>(value, kLarge)); }

// Version, flags (names are UTF-8), method (stored), time and date (1980-01-01, so that equal rows are equal files),
// CRC.
void add_common(Fields& fields, const ZipEntry& entry) {
  fields.add(uint16_t{45}).add(uint16_t{0x800}).add(uint16_t{0}).add(uint16_t{0}).add(uint16_t{0x21}).add(entry.crc);
}

}  // namespace

uint32_t zip_crc(uint32_t crc, std::span<const std::byte> bytes) noexcept {
  return static_cast<uint32_t>(crc32_z(crc, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

void ZipWriter::begin(const std::string& name, uint64_t size, uint32_t crc) {
  entries_.push_back({name, crc, size, size, file_.written(), false});
  const bool large = size >= kLarge;
  Fields fields;
  fields.add(kLocal);
  add_common(fields, entries_.back());
  fields.add(large ? kLarge : capped(size)).add(large ? kLarge : capped(size));
  fields.add(static_cast<uint16_t>(name.size())).add(static_cast<uint16_t>(large ? 20 : 0)).add(name);
  if (large) fields.add(kZip64).add(uint16_t{16}).add(size).add(size);
  file_.write(fields.text());
}

void ZipWriter::finish() {
  const uint64_t offset = file_.written();
  for (const ZipEntry& entry : entries_) {
    Fields extra;
    if (entry.size >= kLarge) extra.add(entry.size).add(entry.size);
    if (entry.offset >= kLarge) extra.add(entry.offset);
    const auto extra_bytes = static_cast<uint16_t>(extra.text().size());
    Fields fields;
    fields.add(kCentral).add(uint16_t{45});
    add_common(fields, entry);
    fields.add(capped(entry.size)).add(capped(entry.size)).add(static_cast<uint16_t>(entry.name.size()));
    fields.add(static_cast<uint16_t>(extra_bytes == 0 ? 0 : extra_bytes + 4));
    fields.add(uint16_t{0})
        .add(uint16_t{0})
        .add(uint16_t{0})
        .add(uint32_t{0})
        .add(capped(entry.offset))
        .add(entry.name);
    if (extra_bytes != 0) fields.add(kZip64).add(extra_bytes).add(extra.text());
    file_.write(fields.text());
  }
  const uint64_t end = file_.written();
  const uint64_t size = end - offset;
  const auto count = static_cast<uint16_t>(entries_.size());  // at most 64 columns and two special arrays
  Fields fields;
  if (offset >= kLarge || size >= kLarge) {
    fields.add(kEnd64)
        .add(uint64_t{kEnd64Bytes - 12})
        .add(uint16_t{45})
        .add(uint16_t{45})
        .add(uint32_t{0})
        .add(uint32_t{0});
    fields.add(uint64_t{count}).add(uint64_t{count}).add(size).add(offset);
    fields.add(kLocator64).add(uint32_t{0}).add(end).add(uint32_t{1});
  }
  fields.add(kEnd).add(uint16_t{0}).add(uint16_t{0}).add(count).add(count).add(capped(size)).add(capped(offset));
  fields.add(uint16_t{0});
  file_.write(fields.text());
}

ZipReader::ZipReader(std::span<const std::byte> bytes, std::string where) : bytes_(bytes), where_(std::move(where)) {
  // The end record is followed by a comment of up to 65,535 bytes, whose length it holds.
  constexpr size_t kComment = 65535;
  for (size_t back = kEndBytes; back <= std::min(bytes.size(), kEndBytes + kComment); ++back) {
    const uint64_t at = bytes.size() - back;
    if (number_at<uint32_t>(bytes, at) != kEnd || number_at<uint16_t>(bytes, at + 20) != back - kEndBytes) continue;
    uint64_t count = number_at<uint16_t>(bytes, at + 10);
    uint64_t size = number_at<uint32_t>(bytes, at + 12);
    uint64_t offset = number_at<uint32_t>(bytes, at + 16);
    if (at >= kLocatorBytes && number_at<uint32_t>(bytes, at - kLocatorBytes) == kLocator64) {
      const auto end64 = number_at<uint64_t>(bytes, at - kLocatorBytes + 8);
      if (!fits(bytes, end64, kEnd64Bytes) || number_at<uint32_t>(bytes, end64) != kEnd64) break;
      count = number_at<uint64_t>(bytes, end64 + 32);
      size = number_at<uint64_t>(bytes, end64 + 40);
      offset = number_at<uint64_t>(bytes, end64 + 48);
    }
    read_directory(offset, size, count);
    return;
  }
  throw Error("{}: expected a .npz file, which is a ZIP archive, found another file or a truncated one", where_);
}

void ZipReader::read_directory(uint64_t offset, uint64_t size, uint64_t count) {
  const auto damaged = [&] { throw Error("{}: the directory of the archive is damaged", where_); };
  if (!fits(bytes_, offset, size) || count > size / kCentralBytes) damaged();
  const std::span<const std::byte> all = bytes_.subspan(offset, size);
  uint64_t at = 0;
  for (uint64_t i = 0; i < count; ++i) {
    if (!fits(all, at, kCentralBytes) || number_at<uint32_t>(all, at) != kCentral) damaged();
    const uint64_t name = number_at<uint16_t>(all, at + 28), extra = number_at<uint16_t>(all, at + 30);
    const uint64_t comment = number_at<uint16_t>(all, at + 32);
    if (!fits(all, at + kCentralBytes, name + extra + comment)) damaged();
    ZipEntry entry;
    entry.name.assign(reinterpret_cast<const char*>(all.data() + at + kCentralBytes), name);
    entry.crc = number_at<uint32_t>(all, at + 16);
    entry.packed = number_at<uint32_t>(all, at + 20);
    entry.size = number_at<uint32_t>(all, at + 24);
    entry.offset = number_at<uint32_t>(all, at + 42);
    const auto method = number_at<uint16_t>(all, at + 10);
    const bool encrypted = (number_at<uint16_t>(all, at + 8) & kEncrypted) != 0;
    if (encrypted || (method != 0 && method != 8)) {
      throw Error("{}: {}: expected an entry that is stored or deflated, found {}", where_, entry.name,
                  encrypted ? "an encrypted one" : fmt::format("method {}", method));
    }
    entry.deflated = method == 8;
    std::span<const std::byte> rest = all.subspan(at + kCentralBytes + name, extra);
    while (rest.size() >= 4) {
      const auto id = number_at<uint16_t>(rest, 0);
      const auto length = number_at<uint16_t>(rest, 2);
      if (!fits(rest, 4, length)) damaged();
      std::span<const std::byte> field = rest.subspan(4, length);
      for (uint64_t* value : {&entry.size, &entry.packed, &entry.offset}) {
        if (id != kZip64 || *value != kLarge) continue;
        if (field.size() < 8) damaged();
        *value = number_at<uint64_t>(field, 0);
        field = field.subspan(8);
      }
      rest = rest.subspan(4 + size_t{length});
    }
    entries_.push_back(std::move(entry));
    at += kCentralBytes + name + extra + comment;
  }
}

const ZipEntry* ZipReader::find(std::string_view name) const noexcept {
  const auto found = std::find_if(entries_.begin(), entries_.end(), [&](const ZipEntry& e) { return e.name == name; });
  return found == entries_.end() ? nullptr : &*found;
}

std::span<const std::byte> ZipReader::packed(const ZipEntry& entry) const {
  if (fits(bytes_, entry.offset, kLocalBytes) && number_at<uint32_t>(bytes_, entry.offset) == kLocal) {
    const uint64_t data = entry.offset + kLocalBytes + number_at<uint16_t>(bytes_, entry.offset + 26) +
                          number_at<uint16_t>(bytes_, entry.offset + 28);
    if (fits(bytes_, data, entry.packed) && (entry.deflated || entry.packed == entry.size)) {
      return bytes_.subspan(data, entry.packed);
    }
  }
  throw Error("{}: {}: the entry is damaged or truncated", where_, entry.name);
}

struct ZipStream::Inflater {
  Inflater() {
    if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) throw Error("[npz] not enough memory to inflate");  // raw deflate
  }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
  ~Inflater() { inflateEnd(&stream); }
  z_stream stream = {};
};

ZipStream::ZipStream(const ZipReader& archive, const ZipEntry& entry)
    : where_(archive.where()), entry_(entry), rest_(archive.packed(entry)) {
  if (entry.deflated) inflater_ = std::make_unique<Inflater>();
}
ZipStream::ZipStream(ZipStream&&) noexcept = default;
ZipStream::~ZipStream() = default;

void ZipStream::fail(const char* what) const { throw Error("{}: {}: {}", where_, entry_.name, what); }

void ZipStream::read(std::span<std::byte> out) {
  if (out.size() > entry_.size - done_) fail("the array is shorter than its shape");
  if (inflater_) {
    inflate(out);
  } else {
    std::copy_n(rest_.begin(), out.size(), out.begin());
    rest_ = rest_.subspan(out.size());
  }
  done_ += out.size();
  crc_ = zip_crc(crc_, out);
}

void ZipStream::inflate(std::span<std::byte> out) {
  constexpr size_t kMax = size_t{1} << 30;  // zlib counts in 32 bits
  z_stream& stream = inflater_->stream;
  while (!out.empty()) {
    const size_t in = std::min(rest_.size(), kMax), room = std::min(out.size(), kMax);
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(rest_.data()));
    stream.avail_in = static_cast<uInt>(in);
    stream.next_out = reinterpret_cast<Bytef*>(out.data());
    stream.avail_out = static_cast<uInt>(room);
    const int code = ::inflate(&stream, Z_NO_FLUSH);
    const size_t made = room - stream.avail_out;
    rest_ = rest_.subspan(in - stream.avail_in);
    out = out.subspan(made);
    if (out.empty()) return;
    if (code != Z_OK || (made == 0 && stream.avail_in == in)) fail("the entry cannot be inflated");
  }
}

void ZipStream::finish() {
  if (done_ != entry_.size) fail("the array is longer than its shape");
  if (crc_ != entry_.crc) fail("the checksum of the entry is wrong: the file is damaged");
}

}  // namespace quern::replay
