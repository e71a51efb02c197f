// Plays random games of chess, for tests that compare them with other programs. For each line "SEED STYLE", plays a
// game and prints a line for each position, the last one included, and an empty line after the game:
//
//   FEN <tab> result <tab> legal moves <tab> the move that is played
//
// The result is - while the game goes on, then "lost" (by the player to move) or "drawn". Styles: 0 any legal move, 1
// moves back often, so that positions repeat; 2 prefers captures and promotions; 3 prefers moves of pawns and castling.
#include <cstdlib>
#include <iostream>
#include <random>
#include <sstream>
#include <vector>

#include "games/chess.h"
#include "games/chess_actions.h"
#include "games/chess_fen.h"
#include "games/chess_moves.h"

namespace {

namespace games = quern::games;
namespace chess = quern::games::chess;

class RandomGame {
 public:
  RandomGame(unsigned seed, int style) : generator_(seed), style_(style) {}

  void run() {
    const auto game = games::make_chess();
    const auto position = game->start();
    while (true) {
      const chess::Board& board = games::chess_board(*position);
      const chess::MoveList moves = chess::legal_moves(board);
      const bool over = position->over();
      std::cout << chess::write_fen(board) << '\t' << (over ? result(*position) : "-") << '\t';
      for (const chess::Move move : moves) std::cout << chess::move_text(move) << ' ';
      if (over) break;
      const chess::Move move = choose(board, moves);
      std::cout << '\t' << chess::move_text(move) << '\n';
      before_last_ = last_;
      last_ = move;
      position->play(chess::action_of(move, board.turn));
    }
    std::cout << "\t\n\n";
  }

 private:
  static const char* result(const games::Position& position) {
    return position.outcome() == games::Outcome::kLoss ? "lost" : "drawn";
  }

  chess::Move choose(const chess::Board& board, const chess::MoveList& moves) {
    std::vector<chess::Move> preferred;
    for (const chess::Move move : moves) {
      if (prefers(board, move)) preferred.push_back(move);
    }
    if (!preferred.empty() && generator_() % 2 == 0) return preferred[generator_() % preferred.size()];
    return *(moves.begin() + generator_() % moves.size());
  }

  bool prefers(const chess::Board& board, chess::Move move) const {
    const bool is_pawn = board.placement.piece_at(move.from) == chess::kPawn;
    const bool is_castling = board.placement.piece_at(move.from) == chess::kKing && std::abs(move.from - move.to) == 2;
    switch (style_) {
      case 1:
        return move.from == before_last_.to && move.to == before_last_.from;
      case 2:
        return board.placement.piece_at(move.to) != chess::kNoPiece || move.promotion != chess::kNoPiece;
      case 3:
        return is_pawn || is_castling;
      default:
        return false;
    }
  }

  std::mt19937 generator_;
  int style_;
  chess::Move last_{}, before_last_{};  // the second is the player's own
};

}  // namespace

int main() try {
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    unsigned seed;
    int style;
    words >> seed >> style;
    RandomGame(seed, style).run();
    std::cout.flush();
  }
  return 0;
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 2;
}
