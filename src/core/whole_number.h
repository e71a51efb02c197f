// Whole numbers as people type them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace quern {

// The exact value of decimal digits, with or without leading zeros, single underscores between digits (10_000), and a
// fraction or an exponent if the value is whole (1e3, 2.5e3, 1.0). No floating-point arithmetic is involved. nullopt
// for anything else: 1.5, signs, spaces, other bases (0x10), suffixes (10k: is it 10,000 or 10,240?), and values of
// 2^64 and above.
std::optional<uint64_t> parse_whole_number(std::string_view text);

// "; write 10e3" for 10k, and so on for M, G and B; empty for anything else.
std::string whole_number_hint(std::string_view text);

}  // namespace quern
