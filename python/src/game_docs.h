// Docstrings of games. tests/python/package_test.py runs the examples.
#pragma once

namespace quern::python {

inline constexpr const char* kGameDoc = R"(Returns a game of the library: "tictactoe", "connect4" or "chess".

It has the methods of a quern.Game, and text for positions and moves.

>>> game = quern.game("connect4")
>>> state = game.play(game.start(), 3)
>>> game.legal(state)
[0, 1, 2, 3, 4, 5, 6])";

inline constexpr const char* kBuiltinGameDoc =
    R"(The rules of a game of the library, from quern.game(). States are quern.Position objects, which never change.

>>> quern.game("chess")
<quern.BuiltinGame chess>)";

inline constexpr const char* kGameNameDoc = R"(The name of the game.

>>> quern.game("chess").name
'chess')";

inline constexpr const char* kGameShapeDoc = R"((planes, rows, columns) of planes().

>>> quern.game("connect4").shape
(3, 6, 7))";

inline constexpr const char* kGameActionsDoc = R"(The number of actions, legal or not.

>>> quern.game("connect4").actions
7)";

inline constexpr const char* kMaxMovesDoc = R"(The number of moves of the longest game.

>>> quern.game("connect4").max_moves
42)";

inline constexpr const char* kSymmetriesDoc =
    R"(The symmetries of the game as (squares, actions): where each square, row by row, and each action goes.

>>> squares, actions = quern.game("connect4").symmetries[0]
>>> actions
[6, 5, 4, 3, 2, 1, 0])";

inline constexpr const char* kStartDoc = R"(Returns the first position.

>>> quern.game("connect4").start()
<quern.Position of connect4: >)";

inline constexpr const char* kParseDoc =
    R"(Returns the position of a text: the moves that lead to it (4455), or FEN for chess.

>>> game = quern.game("tictactoe")
>>> print(game.draw(game.parse("519")))
O . .
. X .
. . X
<BLANKLINE>)";

inline constexpr const char* kLegalDoc = R"(Returns the legal actions in ascending order; none if the game is over.

>>> game = quern.game("tictactoe")
>>> game.legal(game.parse("519"))
[1, 2, 3, 5, 6, 7])";

inline constexpr const char* kPlayDoc = R"(Returns the position after a legal action.

>>> game = quern.game("tictactoe")
>>> game.play(game.start(), 4)
<quern.Position of tictactoe: 5>)";

inline constexpr const char* kResultDoc =
    R"(Returns the result for the player to move: 1, 0 or -1 if the game is over, otherwise None.

>>> game = quern.game("tictactoe")
>>> print(game.result(game.start()), game.result(game.parse("14253")))
None -1)";

inline constexpr const char* kPlanesDoc =
    R"(Returns what a network sees of a position: a float32 array of `shape`, seen by the player to move.

>>> game = quern.game("tictactoe")
>>> game.planes(game.start()).shape
(2, 3, 3))";

inline constexpr const char* kKeyDoc =
    R"(Returns a number that is equal for positions with equal planes and legal moves, and different for others.

>>> game = quern.game("tictactoe")
>>> game.key(game.parse("123")) == game.key(game.parse("321"))
True)";

inline constexpr const char* kDrawDoc = R"(Returns the board as text of several lines.

>>> game = quern.game("tictactoe")
>>> print(game.draw(game.parse("5")))
. . .
. X .
. . .
<BLANKLINE>)";

inline constexpr const char* kActionTextDoc = R"(Returns a legal action as people write it.

>>> game = quern.game("chess")
>>> state = game.start()
>>> game.action_text(state, game.parse_action(state, "e2e4"))
'e2e4')";

inline constexpr const char* kParseActionDoc = R"(Returns the legal action that a text means.

>>> game = quern.game("connect4")
>>> game.parse_action(game.start(), "4")
3)";

inline constexpr const char* kPositionDoc = R"(A position of a game of the library.

>>> quern.game("connect4").parse("4455")
<quern.Position of connect4: 4455>)";

inline constexpr const char* kPlayerDoc = R"(Whose turn it is: 0 for the player who began, or 1.

>>> quern.game("connect4").parse("4").player
1)";

inline constexpr const char* kPositionTextDoc = R"(What parse() reads: the moves that lead to it, or FEN for chess.

>>> quern.game("connect4").parse("4455").text
'4455')";

}  // namespace quern::python
