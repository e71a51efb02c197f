// The board of Connect Four as two words of bits.
//
//     6 13 20 27 34 41 48   <- always 0: keeps lines of one column from running into the next
//     5 12 19 26 33 40 47
//     4 11 18 25 32 39 46
//     3 10 17 24 31 38 45
//     2  9 16 23 30 37 44
//     1  8 15 22 29 36 43
//     0  7 14 21 28 35 42
#pragma once

#include <bit>
#include <cstdint>

namespace quern::games {

struct Connect4Board {
  static constexpr int kRows = 6;
  static constexpr int kColumns = 7;
  static constexpr int kCells = kRows * kColumns;
  static constexpr int kStride = kRows + 1;  // bits of a column

  // The lowest cell of a column, of every column, and all cells.
  static constexpr uint64_t bottom(int column) { return uint64_t{1} << (column * kStride); }
  static constexpr uint64_t kBottoms = 0x0040810204081;
  static constexpr uint64_t kBoard = kBottoms * 63;
  static constexpr uint64_t column_cells(int column) { return bottom(column) * 63; }

  uint64_t own = 0;  // stones of the player to move
  uint64_t all = 0;  // stones of both

  friend bool operator==(const Connect4Board&, const Connect4Board&) = default;

  uint64_t other() const { return all ^ own; }
  int stones() const { return std::popcount(all); }

  // The cells in which a stone would land.
  uint64_t landings() const { return (all + kBottoms) & kBoard; }
  bool can_play(int column) const { return landings() & column_cells(column); }

  void play(int column) { play_cell(landings() & column_cells(column)); }
  // `cell` must be one of landings().
  void play_cell(uint64_t cell) {
    own ^= all;
    all |= cell;
  }

  // Whether the player who has just moved has four in a line.
  bool lost() const { return has_four(other()); }
  bool over() const { return all == kBoard || lost(); }

  // A number of 49 bits that no other board has, and not 0: in a column of h stones, own < 2^h and all + 1 = 2^h, so
  // that the sums of different h do not overlap.
  uint64_t key() const { return own + all + kBottoms; }

  static bool has_four(uint64_t stones) {
    for (const int step : {1, kStride - 1, kStride, kStride + 1}) {
      const uint64_t pairs = stones & stones >> step;
      if (pairs & pairs >> (2 * step)) return true;
    }
    return false;
  }
};

}  // namespace quern::games
