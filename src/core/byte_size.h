// Human-readable amounts of memory. K, M, G and T are powers of 1024.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace quern {

// Accepts "512M", "1.5G", "65536" or "64 KiB". Returns nullopt for anything else and on overflow.
std::optional<uint64_t> parse_bytes(std::string_view text);

// The shortest text that parse_bytes() parses to the same number: "512M", "1000".
std::string exact_bytes(uint64_t bytes);

// For tables and messages, to three significant digits: "5.21 MiB", "87.0 MiB", "512 MiB", "1.21 GiB".
std::string rounded_bytes(uint64_t bytes);

}  // namespace quern
