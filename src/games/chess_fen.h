// Chess positions as text: the Forsyth-Edwards notation of the PGN standard (1994, section 16.1).
#pragma once

#include <string>
#include <string_view>

#include "games/chess_board.h"

namespace quern::games::chess {

inline constexpr std::string_view kStartFen = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1";

// Reads the six fields, one space between them. The last two may be missing together: 0 1.
//
// Error for anything that is not exactly FEN, and for positions that cannot occur: other than one king of each colour,
// more pieces than pawns can have been promoted to, pawns on the first or last rank, rights to castle without king or
// rook, a passed square without the pawn that passed it, a king that can be taken, more than 100 moves without capture.
// A passed square is forgotten if no legal move captures there.
Board read_fen(std::string_view text);

// The square that a pawn has passed appears only if a legal move captures there.
std::string write_fen(const Board& board);

}  // namespace quern::games::chess
