// Decompression of .gz and .zst files while they are read.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "data/byte_reader.h"

namespace quern::data {

enum class Compression : uint8_t { kNone, kGzip, kZstd };

// By the name: .gz and .zst, ignoring case.
Compression compression_of(const std::filesystem::path& path);

// The decompressed contents of all members (gzip) or frames (zstd) of a file, one after the other. `name` is the file
// in messages. Memory does not depend on the size of the file or its contents: 32 KiB for gzip, up to 128 MiB for zstd,
// depending on the window that the file was compressed with; larger windows (zstd --long=28 and above) are refused.
//
// read() throws an Error with the position in the compressed file if it is not in this format, truncated or damaged.
// Checksums are verified where the formats have them, at the end of each member or frame, so some bytes of a damaged
// one can be returned before the Error.
std::unique_ptr<ByteReader> decompress(Compression compression, std::unique_ptr<ByteReader> compressed,
                                       std::string name);

}  // namespace quern::data
