#include "replay/layout.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/cache_line.h"
#include "core/crc32c.h"
#include "core/error.h"
#include "core/text.h"
#include "replay/episodes.h"
#include "replay/sum_tree.h"

namespace quern::replay {
namespace {

constexpr uint64_t kMagic = 0x0A79616C70657271;  // "qreplay\n" in little endian

struct Header {
  uint64_t magic = kMagic;
  uint32_t version = kLayoutVersion;
  uint32_t checksum = 0;  // of all following bytes of header and schema
  uint64_t total_bytes = 0;
  uint64_t schema_bytes = 0;
  uint64_t capacity = 0;
  double alpha = 0;
  double samples_per_insert = 0;
  double slack = 0;
  uint64_t minimum = 0;
  uint32_t prioritised = 0;
  uint32_t prefault = 0;
  uint32_t terminal = 0;  // number of the column, from 1; 0 for none
  uint32_t truncated = 0;
};
static_assert(sizeof(Header) == 88 && sizeof(Header) <= kHeaderBytes);  // no padding: all bytes have a meaning
constexpr size_t kChecked = offsetof(Header, checksum) + sizeof(Header::checksum);

constexpr uint64_t kTooLarge = std::numeric_limits<int64_t>::max();

// Offset of the next part after `count` items of `each` bytes at `offset`; kTooLarge on overflow, which propagates.
uint64_t after(uint64_t offset, uint64_t count, uint64_t each) {
  uint64_t bytes = 0;
  uint64_t end = 0;
  if (__builtin_mul_overflow(count, each, &bytes) || __builtin_add_overflow(offset, bytes, &end)) return kTooLarge;
  return end >= kTooLarge - kCacheLine ? kTooLarge : (end + kCacheLine - 1) / kCacheLine * kCacheLine;
}

std::string_view as_text(const Header& header) { return {reinterpret_cast<const char*>(&header), sizeof(header)}; }

// `bytes` is the entire header with the schema.
uint32_t checksum_of(std::string_view bytes) { return crc32c(bytes.substr(kChecked)); }

[[noreturn]] void wrong(const Memory& memory, std::string_view what, uint64_t expected, uint64_t found) {
  throw Error("{}: damaged: {}: expected {}, found {}", memory.storage().text(), what, expected, found);
}

Header fixed_part(const Memory& memory, std::string_view bytes) {
  Header header;
  if (bytes.size() >= sizeof(header)) std::memcpy(&header, bytes.data(), sizeof(header));
  if (bytes.size() < sizeof(header) || header.magic != kMagic) {
    throw Error("{}: expected a replay buffer, found something else", memory.storage().text());
  }
  if (header.version != kLayoutVersion && header.version != kEpisodesVersion) {
    throw Error(
        "{}: expected layout version {} or {}, found {}; create it again with this version of Quern, or remove it",
        memory.storage().text(), kLayoutVersion, kEpisodesVersion, header.version);
  }
  if (header.total_bytes != memory.file_bytes()) {
    wrong(memory, "bytes", header.total_bytes, memory.file_bytes());
  }
  if (header.schema_bytes > kMaxSchemaText) {
    wrong(memory, "bytes of schema, at most", kMaxSchemaText, header.schema_bytes);
  }
  if (header.prioritised > 1) wrong(memory, "prioritised, at most", 1, header.prioritised);
  if (header.prefault > 1) wrong(memory, "prefault, at most", 1, header.prefault);
  const uint32_t version = header.terminal + header.truncated > 0 ? kEpisodesVersion : kLayoutVersion;
  if (header.version != version) wrong(memory, "version", version, header.version);
  return header;
}

std::string column_name(const Schema& schema, uint32_t number) {
  if (number == 0) return {};
  if (number > schema.columns().size()) {
    throw Error("column of episode ends: expected at most {}, found {}", schema.columns().size(), number);
  }
  return schema.columns()[number - 1].name;
}

uint32_t column_number(const Schema& schema, const std::string& name) {
  return name.empty() ? 0 : static_cast<uint32_t>(schema.index_of(name) + 1);
}

void check_end_column(const Schema& schema, const char* option, const std::string& name) {
  if (name.empty()) return;
  const Column& column = schema.columns()[schema.index_of(name)];
  const bool flag = column.dtype == DType::kBool || column.dtype == DType::kU8;
  if (flag && column.elements() == 1 && column.encoding == Encoding::kRaw) return;
  throw Error("[replay] {}: column {}: expected bool or uint8, one number per row, found {}", option, in_quotes(name),
              column.description());
}

BufferOptions options_of(const Header& header, const Schema& schema) {
  BufferOptions options;
  options.capacity = header.capacity;
  options.prioritised = header.prioritised == 1;
  options.alpha = header.alpha;
  options.limit = {header.samples_per_insert, header.minimum, header.slack};
  options.prefault = header.prefault == 1;
  options.terminal = column_name(schema, header.terminal);
  options.truncated = column_name(schema, header.truncated);
  return options;
}

Description description_of(const Memory& memory, const Header& header, std::string_view text) {
  try {
    Schema schema = Schema::from_text(text);
    const BufferOptions options = options_of(header, schema);
    Description found{std::move(schema), options};
    check_options(found.options, found.schema);
    static_cast<void>(Layout(found.schema, found.options));
    return found;
  } catch (const Error& error) {
    throw Error("{}: damaged: {}", memory.storage().text(), error.what());
  }
}

}  // namespace

bool starts_as_buffer(std::string_view bytes) noexcept {
  return bytes.size() >= sizeof kMagic && std::memcmp(bytes.data(), &kMagic, sizeof kMagic) == 0;
}

Layout::Layout(const Schema& schema, const BufferOptions& options) {
  counters = after(kHeaderBytes, schema.text().size(), 1);
  words = after(counters, kCounters, kCacheLine);
  uint64_t end = after(words, options.capacity, sizeof(uint64_t));
  if (options.has_episodes()) {
    links = end;
    end = after(end, options.capacity, sizeof(Link));
  }
  if (options.prioritised) {
    tree = end;
    end = after(end, SumTree::words(options.capacity), sizeof(uint64_t));
  }
  for (const Column& column : schema.columns()) {
    columns.push_back(end);
    end = after(end, options.capacity, column.stored_bytes());
  }
  if (end == kTooLarge) {
    throw Error("[replay] expected a buffer of less than 2^63 bytes, found {} rows of {} bytes", options.capacity,
                schema.stored_bytes());
  }
  total = end;
}

void check_options(const BufferOptions& options, const Schema& schema) {
  if (options.capacity == 0 || options.capacity > kMaxRows) {
    throw Error("[replay] capacity: expected 1 to {} rows, found {}", kMaxRows, options.capacity);
  }
  if (!(options.alpha >= 0) || !std::isfinite(options.alpha)) {
    throw Error("[replay] alpha: expected a number from 0, found {}", options.alpha);
  }
  check_rate_limit(options.limit, options.capacity);
  check_end_column(schema, "terminal", options.terminal);
  check_end_column(schema, "truncated", options.truncated);
  if (!options.terminal.empty() && options.terminal == options.truncated) {
    throw Error("[replay] truncated: expected another column than terminal, found {} for both",
                in_quotes(options.terminal));
  }
}

std::string make_header(const Schema& schema, const BufferOptions& options) {
  const std::string text = schema.text();
  Header header;
  header.total_bytes = Layout(schema, options).total;
  header.schema_bytes = text.size();
  header.capacity = options.capacity;
  header.alpha = options.alpha;
  header.samples_per_insert = options.limit.samples_per_insert;
  header.slack = options.limit.slack;
  header.minimum = options.limit.minimum;
  header.prioritised = options.prioritised ? 1 : 0;
  header.prefault = options.prefault ? 1 : 0;
  header.version = options.has_episodes() ? kEpisodesVersion : kLayoutVersion;
  header.terminal = column_number(schema, options.terminal);
  header.truncated = column_number(schema, options.truncated);
  std::string bytes(as_text(header));
  bytes.resize(kHeaderBytes, '\0');
  bytes += text;
  header.checksum = checksum_of(bytes);
  return bytes.replace(0, sizeof(header), as_text(header));
}

Description read_header(const Memory& memory) {
  const std::string page = memory.head(0, kHeaderBytes);
  const Header header = fixed_part(memory, page);
  const std::string text = memory.head(kHeaderBytes, header.schema_bytes);
  const uint32_t checksum = checksum_of(page + text);
  if (checksum != header.checksum) wrong(memory, "checksum of the header", header.checksum, checksum);
  Description found = description_of(memory, header, text);
  if (found.schema.text().size() != text.size()) {
    wrong(memory, "bytes of schema", found.schema.text().size(), text.size());
  }
  const uint64_t total = Layout(found.schema, found.options).total;
  if (total != header.total_bytes) wrong(memory, "bytes", total, header.total_bytes);
  return found;
}

}  // namespace quern::replay
