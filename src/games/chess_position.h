// A chess position with its history, as search and training see it. chess.h describes its planes.
#pragma once

#include <array>
#include <optional>

#include "games/chess_board.h"
#include "games/game.h"

namespace quern::games::chess {

inline constexpr size_t kHistory = 8;  // earlier positions in the planes
inline constexpr size_t kCurrentPlanes = 18, kHistoryPlanes = 13;
inline constexpr size_t kPlanes = kCurrentPlanes + kHistory * kHistoryPlanes;
inline constexpr size_t kMaxGame = 512;      // moves of either player
inline constexpr uint8_t kFiftyMoves = 100;  // moves of both without capture or pawn move that end the game

// 1.6 KB without pointers: a copy is one allocation and one memcpy.
class ChessPosition final : public Position {
 public:
  explicit ChessPosition(const Board& board);

  std::unique_ptr<Position> clone() const override { return std::make_unique<ChessPosition>(*this); }
  int player() const override { return board_.turn; }
  size_t moves_played() const override { return moves_played_; }
  void legal_actions(std::vector<Action>& out) const override;
  void play(Action action) override;
  std::optional<Outcome> result_after(Action action) const override;
  bool over() const override { return over_; }
  Outcome outcome() const override { return mated_ ? Outcome::kLoss : Outcome::kDraw; }
  void write_planes(std::span<float> out) const override;
  uint64_t hash() const override;

  const Board& board() const { return board_; }

 private:
  struct Earlier {
    Placement placement;
    bool repeated;  // the position had occurred before
  };

  void remember();
  uint8_t occurrences(uint64_t key, int positions) const;
  void find_repetitions();
  void find_end();

  Board board_;
  uint16_t moves_played_ = 0;
  uint8_t repetitions_ = 0;  // how often the position has occurred before
  bool over_ = false, mated_ = false;
  uint8_t earlier_count_ = 0, key_count_ = 0;
  std::array<Earlier, kHistory> earlier_{};   // newest first
  std::array<uint64_t, kFiftyMoves> keys_{};  // of the positions since the last capture or pawn move, oldest first
};

}  // namespace quern::games::chess
