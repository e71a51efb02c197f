#include "games/digit_moves.h"

#include <algorithm>

#include "core/error.h"

namespace quern::games {
namespace {

// "one of 1, 2, 7", or that there is none.
std::string legal_moves_text(const Position& position) {
  std::vector<Action> actions;
  position.legal_actions(actions);
  if (actions.empty()) return "no move, because the game is over";
  std::string text = "one of " + digit_of(actions[0]);
  for (size_t i = 1; i < actions.size(); ++i) text += ", " + digit_of(actions[i]);
  return text;
}

bool is_legal(const Position& position, char digit) {
  if (digit < '1' || digit > '9') return false;
  std::vector<Action> actions;
  position.legal_actions(actions);
  return std::ranges::binary_search(actions, static_cast<Action>(digit - '1'));
}

}  // namespace

std::string digit_of(Action action) { return std::to_string(action + 1); }

Action parse_digit(const Game& game, const Position& position, std::string_view text) {
  if (text.size() != 1 || !is_legal(position, text[0])) {
    throw Error("[{}] move: expected {}, found {}", game.spec().name, legal_moves_text(position), in_quotes(text));
  }
  return static_cast<Action>(text[0] - '1');
}

std::unique_ptr<Position> play_digits(const Game& game, std::string_view digits) {
  std::unique_ptr<Position> position = game.start();
  for (size_t i = 0; i < digits.size(); ++i) {
    if (!is_legal(*position, digits[i])) {
      throw Error("[{}] position {}: expected {} at place {}, found {}", game.spec().name, in_quotes(digits),
                  legal_moves_text(*position), i + 1, in_quotes(digits.substr(i, 1)));
    }
    position->play(static_cast<Action>(digits[i] - '1'));
  }
  return position;
}

}  // namespace quern::games
