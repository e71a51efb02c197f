#include "cli/uci_game.h"

#include <algorithm>

#include "cli/uci_words.h"
#include "core/error.h"
#include "games/chess.h"
#include "games/chess_fen.h"
#include "games/chess_moves.h"

namespace quern::cli {
namespace {

// The same board in a game that begins there.
std::unique_ptr<games::Position> begun_at(const games::Game& game, games::chess::Board board) {
  board.halfmove_clock = 0;
  board.fullmove = std::min<uint16_t>(board.fullmove, 9999);  // what FEN allows
  return game.parse_position(games::chess::write_fen(board));
}

// Up to the word "moves", which is removed.
std::string read_fen_words(UciWords& words) {
  std::string fen;
  while (const auto word = words.next()) {
    if (*word == "moves") break;
    if (!fen.empty()) fen += ' ';
    fen += *word;
  }
  return fen;
}

}  // namespace

std::vector<std::string> uci_moves(const games::Position& position) {
  std::vector<std::string> moves;
  for (const games::chess::Move move : games::chess::legal_moves(games::chess_board(position))) {
    moves.push_back(games::chess::move_text(move));
  }
  return moves;
}

void UciGame::read(std::string_view text) {
  UciWords words(text);
  const std::string_view kind = words.next().value_or("");
  UciGame next(game_);
  if (kind == "fen") {
    next.position_ = game_.parse_position(read_fen_words(words));
  } else if (kind == "startpos") {
    const std::string_view more = words.next().value_or("moves");
    if (more != "moves") throw Error("position: expected moves after startpos, found {}", in_quotes(more, 40));
  } else {
    throw Error("position: expected startpos or fen, found {}", kind.empty() ? "nothing" : in_quotes(kind, 40));
  }
  while (const auto word = words.next()) next.play(*word);
  position_ = std::move(next.position_);
  steps_ = std::move(next.steps_);
}

void UciGame::play(std::string_view move) {
  if (position_->over()) {
    games::chess::Board board = games::chess_board(*position_);
    for (const games::chess::Move legal : games::chess::legal_moves(board)) {
      if (games::chess::move_text(legal) != move) continue;
      board.play(legal);
      position_ = begun_at(game_, board);
      return;
    }
  }
  const games::Action action = game_.parse_action(*position_, move);
  steps_.push_back({position_->hash(), action});
  position_->play(action);
}

std::unique_ptr<games::Position> UciGame::searched_position() const {
  if (!position_->over()) return position_->clone();
  return begun_at(game_, games::chess_board(*position_));
}

bool UciGame::moves_from(uint64_t hash, std::vector<games::Action>& moves) const {
  moves.clear();
  if (position_->hash() == hash) return true;
  for (size_t i = steps_.size(); i-- > 0;) {
    moves.insert(moves.begin(), steps_[i].action);
    if (steps_[i].hash == hash) return true;
  }
  return false;
}

}  // namespace quern::cli
