// The squares that a chess piece attacks, as bits: bit 8 * rank + file, so that a1 is bit 0, b1 bit 1, h8 bit 63.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace quern::games::chess {

using Bitboard = uint64_t;

constexpr Bitboard bit(int square) { return Bitboard{1} << square; }
constexpr int file_of(int square) { return square & 7; }
constexpr int rank_of(int square) { return square >> 3; }
constexpr int square_at(int file, int rank) { return 8 * rank + file; }

// Removes the lowest square from `squares`, which must not be empty.
constexpr int take_square(Bitboard& squares) {
  const int square = std::countr_zero(squares);
  squares &= squares - 1;
  return square;
}

namespace detail {

using Steps = std::array<std::pair<int, int>, 8>;  // files, ranks
using SquareTable = std::array<Bitboard, 64>;

constexpr bool on_board(int file, int rank) { return file >= 0 && file < 8 && rank >= 0 && rank < 8; }

constexpr SquareTable steps_from_each(std::span<const std::pair<int, int>> steps) {
  SquareTable table{};
  for (int square = 0; square < 64; ++square) {
    for (const auto& [files, ranks] : steps) {
      const int file = file_of(square) + files, rank = rank_of(square) + ranks;
      if (on_board(file, rank)) table[static_cast<size_t>(square)] |= bit(square_at(file, rank));
    }
  }
  return table;
}

// The squares in a direction and in the opposite one.
constexpr SquareTable line_through_each(int files, int ranks) {
  SquareTable table{};
  for (int square = 0; square < 64; ++square) {
    for (int distance = -7; distance <= 7; ++distance) {
      const int file = file_of(square) + distance * files, rank = rank_of(square) + distance * ranks;
      if (distance != 0 && on_board(file, rank)) table[static_cast<size_t>(square)] |= bit(square_at(file, rank));
    }
  }
  return table;
}

// By file and the six inner squares of a rank: what a rook on the rank attacks of it. The outer squares do not matter,
// because a rook attacks them or stops before.
using RankTable = std::array<std::array<uint8_t, 64>, 8>;

constexpr RankTable rank_attacks() {
  RankTable table{};
  for (int file = 0; file < 8; ++file) {
    for (int inner = 0; inner < 64; ++inner) {
      int attacks = 0;
      for (const int step : {-1, 1}) {
        for (int to = file + step; to >= 0 && to < 8; to += step) {
          attacks |= 1 << to;
          if (inner << 1 >> to & 1) break;
        }
      }
      table[static_cast<size_t>(file)][static_cast<size_t>(inner)] = static_cast<uint8_t>(attacks);
    }
  }
  return table;
}

inline constexpr Steps kKnightSteps = {{{1, 2}, {2, 1}, {2, -1}, {1, -2}, {-1, -2}, {-2, -1}, {-2, 1}, {-1, 2}}};
inline constexpr Steps kKingSteps = {{{0, 1}, {1, 1}, {1, 0}, {1, -1}, {0, -1}, {-1, -1}, {-1, 0}, {-1, 1}}};
inline constexpr std::array<std::pair<int, int>, 2> kWhitePawnSteps = {{{-1, 1}, {1, 1}}};
inline constexpr std::array<std::pair<int, int>, 2> kBlackPawnSteps = {{{-1, -1}, {1, -1}}};

inline constexpr RankTable kRankAttacks = rank_attacks();

}  // namespace detail

inline constexpr auto kKnightAttacks = detail::steps_from_each(detail::kKnightSteps);
inline constexpr auto kKingAttacks = detail::steps_from_each(detail::kKingSteps);
inline constexpr std::array kPawnAttacks = {detail::steps_from_each(detail::kWhitePawnSteps),  // captures, by colour
                                            detail::steps_from_each(detail::kBlackPawnSteps)};

// Without the square itself.
inline constexpr auto kFileLines = detail::line_through_each(0, 1);
inline constexpr auto kRankLines = detail::line_through_each(1, 0);
inline constexpr auto kDiagonals = detail::line_through_each(1, 1);
inline constexpr auto kAntidiagonals = detail::line_through_each(1, -1);

// The squares of a file or diagonal up to the first piece on either side, and that piece's square. Subtracting the
// square's bit from the pieces on the line borrows up to the next piece; the bytes reversed give the other side.
inline Bitboard line_attacks(int square, Bitboard line, Bitboard pieces) {
  const Bitboard blockers = pieces & line;
  const Bitboard above = blockers - bit(square);
  const Bitboard below = __builtin_bswap64(__builtin_bswap64(blockers) - __builtin_bswap64(bit(square)));
  return (above ^ below) & line;
}

inline Bitboard rook_attacks(int square, Bitboard pieces) {
  const int start_of_rank = square & 56;
  const auto inner = static_cast<size_t>(pieces >> (start_of_rank + 1) & 63);
  const Bitboard along_rank = detail::kRankAttacks[static_cast<size_t>(file_of(square))][inner];
  return line_attacks(square, kFileLines[static_cast<size_t>(square)], pieces) | along_rank << start_of_rank;
}

inline Bitboard bishop_attacks(int square, Bitboard pieces) {
  const auto s = static_cast<size_t>(square);
  return line_attacks(square, kDiagonals[s], pieces) | line_attacks(square, kAntidiagonals[s], pieces);
}

// The squares strictly between two squares of one file, rank or diagonal; none for others.
inline Bitboard between(int from, int to) {
  const auto f = static_cast<size_t>(from);
  if ((kFileLines[f] | kRankLines[f]) & bit(to)) return rook_attacks(from, bit(to)) & rook_attacks(to, bit(from));
  if ((kDiagonals[f] | kAntidiagonals[f]) & bit(to))
    return bishop_attacks(from, bit(to)) & bishop_attacks(to, bit(from));
  return 0;
}

// The other squares of the file, rank or diagonal of two squares, which must share one.
inline Bitboard common_line(int from, int to) {
  const auto f = static_cast<size_t>(from);
  for (const Bitboard line : {kFileLines[f], kRankLines[f], kDiagonals[f]}) {
    if (line & bit(to)) return line;
  }
  return kAntidiagonals[f];
}

}  // namespace quern::games::chess
