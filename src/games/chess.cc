#include "games/chess.h"

#include <algorithm>

#include "core/error.h"
#include "games/chess_actions.h"
#include "games/chess_fen.h"
#include "games/chess_moves.h"
#include "games/chess_position.h"

namespace quern::games {
namespace {

using chess::ChessPosition;

class Chess final : public Game {
 public:
  Chess()
      : Game({.name = "chess",
              .rows = 8,
              .columns = 8,
              .planes = chess::kPlanes,
              .actions = chess::kActions,
              .max_moves = chess::kMaxGame}) {}

  std::unique_ptr<Position> start() const override { return parse_position(chess::kStartFen); }

  std::string draw(const Position& position) const override {
    const chess::Placement& placement = chess_board(position).placement;
    std::string text;
    for (int rank = 7; rank >= 0; --rank) {
      text += static_cast<char>('1' + rank);
      for (int file = 0; file < 8; ++file) {
        const int square = chess::square_at(file, rank);
        const std::string_view letters = placement.color_at(square) == chess::kWhite ? "PNBRQK." : "pnbrqk.";
        text += {' ', letters[placement.piece_at(square)]};
      }
      text += '\n';
    }
    return text + "  a b c d e f g h\n";
  }

  std::string position_text(const Position& position) const override { return chess::write_fen(chess_board(position)); }

  std::unique_ptr<Position> parse_position(std::string_view text) const override {
    return std::make_unique<ChessPosition>(chess::read_fen(text));
  }

  std::string action_text(const Position& position, Action action) const override {
    return chess::move_text(chess::move_of(action, chess_board(position)));
  }

  Action parse_action(const Position& position, std::string_view text) const override {
    const chess::Board& board = chess_board(position);
    if (position.over())
      throw Error("[chess] move: expected none, because the game is over, found {}", in_quotes(text));
    const chess::MoveList moves = chess::legal_moves(board);
    for (const chess::Move move : moves) {
      if (chess::move_text(move) == text) return chess::action_of(move, board.turn);
    }
    throw Error("[chess] move: expected one of the {} legal moves such as {}, found {}", moves.size(),
                chess::move_text(*moves.begin()), in_quotes(text));
  }
};

}  // namespace

std::unique_ptr<Game> make_chess() { return std::make_unique<Chess>(); }

const chess::Board& chess_board(const Position& position) {
  return static_cast<const ChessPosition&>(position).board();
}

}  // namespace quern::games
