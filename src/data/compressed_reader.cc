#include "data/compressed_reader.h"

#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <cctype>
#include <string_view>
#include <utility>
#include <vector>

#include "core/error.h"

namespace quern::data {
namespace {

// The compressed bytes, in blocks.
class Input {
 public:
  Input(std::unique_ptr<ByteReader> bytes, std::string name) : bytes_(std::move(bytes)), name_(std::move(name)) {}

  // The bytes that have not been used; at least one, or none at the end of the file.
  std::span<const char> rest() {
    if (used_ == filled_) {
      filled_ = bytes_->read(block_);
      used_ = 0;
    }
    return std::span(block_).subspan(used_, filled_ - used_);
  }
  void use(size_t count) {
    used_ += count;
    total_ += count;
  }
  uint64_t used() const { return total_; }

  [[noreturn]] void fail_truncated(std::string_view format) const {
    throw Error("[data] {}: byte {}: expected more {} data, found the end: the file is truncated", name_, total_,
                format);
  }
  [[noreturn]] void fail(std::string_view format, std::string_view problem) const {
    throw Error("[data] {}: byte {}: expected {} data, found {}", name_, total_, format, problem);
  }

 private:
  std::unique_ptr<ByteReader> bytes_;
  std::string name_;
  std::vector<char> block_ = std::vector<char>(size_t{64} << 10);
  size_t used_ = 0, filled_ = 0;
  uint64_t total_ = 0;
};

class GzipReader final : public ByteReader {
 public:
  explicit GzipReader(Input input) : input_(std::move(input)) {
    constexpr int kGzipOnly = 16;
    if (inflateInit2(&stream_, MAX_WBITS + kGzipOnly) != Z_OK) throw Error("[data] not enough memory to decompress");
  }
  ~GzipReader() override { inflateEnd(&stream_); }

  uint64_t consumed() const override { return input_.used(); }

  size_t read(std::span<char> out) override {
    out = out.first(std::min<size_t>(out.size(), size_t{1} << 30));  // zlib counts in 32 bits
    for (;;) {
      const std::span<const char> in = input_.rest();
      if (in.empty() && inside_) input_.fail_truncated("gzip");
      if (in.empty()) return 0;
      if (!inside_ && !begin_member(in)) continue;
      if (const size_t got = inflate_some(in, out); got > 0) return got;
    }
  }

 private:
  // Zeros after the last member are padding, as on tapes; gzip ignores them as well.
  bool begin_member(std::span<const char> in) {
    if (members_ > 0 && in.front() == '\0') {
      input_.use(1);
      return false;
    }
    inflateReset(&stream_);
    inside_ = true;
    ++members_;
    return true;
  }

  size_t inflate_some(std::span<const char> in, std::span<char> out) {
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(in.data()));
    stream_.avail_in = static_cast<uInt>(in.size());
    stream_.next_out = reinterpret_cast<Bytef*>(out.data());
    stream_.avail_out = static_cast<uInt>(out.size());
    const int result = inflate(&stream_, Z_NO_FLUSH);
    input_.use(in.size() - stream_.avail_in);
    if (result == Z_STREAM_END) {
      inside_ = false;
    } else if (result != Z_OK) {
      input_.fail("gzip", stream_.msg != nullptr ? fmt::format("damage ({})", stream_.msg) : "damage");
    }
    return out.size() - stream_.avail_out;
  }

  Input input_;
  z_stream stream_ = {};
  bool inside_ = false;  // a member
  uint64_t members_ = 0;
};

class ZstdReader final : public ByteReader {
 public:
  explicit ZstdReader(Input input) : input_(std::move(input)), context_(ZSTD_createDCtx()) {
    if (context_ == nullptr) throw Error("[data] not enough memory to decompress");
  }

  uint64_t consumed() const override { return input_.used(); }

  size_t read(std::span<char> out) override {
    for (;;) {
      const std::span<const char> in = input_.rest();
      ZSTD_inBuffer from{in.data(), in.size(), 0};
      ZSTD_outBuffer to{out.data(), out.size(), 0};
      if (in.empty() && !inside_) return 0;
      const size_t result = ZSTD_decompressStream(context_.get(), &to, &from);
      input_.use(from.pos);
      if (ZSTD_isError(result) != 0) fail(result);
      inside_ = result != 0;
      if (to.pos > 0) return to.pos;
      if (in.empty() && inside_) input_.fail_truncated("zstd");
    }
  }

 private:
  struct Free {
    void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
  };

  [[noreturn]] void fail(size_t result) const {
    const std::string_view name = ZSTD_getErrorName(result);
    if (name.find("too much memory") != std::string_view::npos) {
      input_.fail("zstd", "a window above 128 MiB; compress the file again with at most --long=27");
    }
    input_.fail("zstd", fmt::format("damage ({})", name));
  }

  Input input_;
  std::unique_ptr<ZSTD_DCtx, Free> context_;
  bool inside_ = false;  // a frame, or there is output left
};

}  // namespace

Compression compression_of(const std::filesystem::path& path) {
  std::string ending = path.extension().string();
  for (char& c : ending) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return ending == ".gz" ? Compression::kGzip : ending == ".zst" ? Compression::kZstd : Compression::kNone;
}

std::unique_ptr<ByteReader> decompress(Compression compression, std::unique_ptr<ByteReader> compressed,
                                       std::string name) {
  switch (compression) {
    case Compression::kNone:
      return compressed;
    case Compression::kGzip:
      return std::make_unique<GzipReader>(Input(std::move(compressed), std::move(name)));
    case Compression::kZstd:
      return std::make_unique<ZstdReader>(Input(std::move(compressed), std::move(name)));
  }
  throw Error("[data] compression: expected none, gzip or zstd");
}

}  // namespace quern::data
