// Compressed bytes for tests.
#pragma once

#include <zlib.h>
#include <zstd.h>

#include <cstdlib>
#include <string>
#include <string_view>

namespace quern::data::test {

inline std::string gzip(std::string_view text) {
  z_stream stream = {};
  if (deflateInit2(&stream, 6, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK) std::abort();
  std::string out(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  if (deflate(&stream, Z_FINISH) != Z_STREAM_END) std::abort();
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

// A frame with a checksum, as `zstd` writes it.
inline std::string zstd(std::string_view text, int window_log = 0) {
  ZSTD_CCtx* context = ZSTD_createCCtx();
  ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
  if (window_log > 0) ZSTD_CCtx_setParameter(context, ZSTD_c_windowLog, window_log);
  std::string out(ZSTD_compressBound(text.size()), '\0');
  // As a stream, so that the frame does not state its size and has the window that was asked for.
  ZSTD_inBuffer from{text.data(), text.size(), 0};
  ZSTD_outBuffer to{out.data(), out.size(), 0};
  ZSTD_compressStream2(context, &to, &from, ZSTD_e_flush);
  if (ZSTD_compressStream2(context, &to, &from, ZSTD_e_end) != 0) std::abort();
  ZSTD_freeCCtx(context);
  out.resize(to.pos);
  return out;
}

}  // namespace quern::data::test
