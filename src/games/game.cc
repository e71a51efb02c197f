#include "games/game.h"

#include "core/error.h"
#include "games/chess.h"
#include "games/connect4.h"
#include "games/tictactoe.h"

namespace quern::games {

std::optional<Outcome> Position::result_after(Action action) const {
  const std::unique_ptr<Position> next = clone();
  next->play(action);
  if (!next->over()) return std::nullopt;
  return flipped(next->outcome());
}

std::unique_ptr<Game> make_game(std::string_view name) {
  if (name == "tictactoe") return make_tictactoe();
  if (name == "connect4") return make_connect4();
  if (name == "chess") return make_chess();
  throw Error("[games] name: expected tictactoe, connect4 or chess, found {}", in_quotes(name));
}

}  // namespace quern::games
