// Perfect Connect Four, by alpha-beta search of the whole game.
#pragma once

#include <cstdint>
#include <vector>

#include "games/connect4_board.h"
#include "games/solver.h"

namespace quern::games {

// The score of a position counts how early the game is won: 22 minus the stones that the winner will have on the board,
// positive if the player to move wins, negative if it loses, 0 for a draw. A win with one's last stone is 1.
class Connect4Solver final : public Solver {
 public:
  // The table has 2^table_bits entries of 8 bytes: 64 MB.
  explicit Connect4Solver(unsigned table_bits = 23);

  int score(const Connect4Board& board);
  // The sign of score(), in less time; at once for a board with at most one stone.
  Outcome outcome(const Connect4Board& board);
  Outcome outcome(const Position& position) override;
  bool reaches(const Position& position, Outcome wanted) override;

  uint64_t nodes() const { return nodes_; }  // searched since construction

 private:
  struct Bounds {
    int lower, upper;
  };

  // The score if it is in [alpha, beta]; else a bound of it on the same side.
  int bounded_score(const Connect4Board& board, int alpha, int beta);
  // The same, where the player to move cannot win at once and alpha < beta.
  int search(const Connect4Board& board, int alpha, int beta);
  int search_moves(const Connect4Board& board, uint64_t cells, int alpha, int beta);

  uint64_t& slot(uint64_t key) { return table_[key * 0x9E3779B97F4A7C15 >> shift_]; }
  Bounds find(uint64_t key);
  void store(uint64_t key, Bounds bounds);

  // An entry is the key of a board (49 bits), and bounds of its score, plus 32 (6 bits each); 0 is an empty entry.
  std::vector<uint64_t> table_;
  unsigned shift_;
  uint64_t nodes_ = 0;
};

}  // namespace quern::games
