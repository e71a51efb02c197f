// Docstrings of board networks. tests/python/package_test.py runs the examples.
#pragma once

namespace quern::python {

inline constexpr const char* kLoadBoardDoc =
    R"(Loads the network of a run of selfplay() or train_board(), to evaluate positions and to play.

run and checkpoint are those of load(). game: the rules of a run with a game that is written in Python; without them,
evaluate() works, search() and best_move() do not.

>>> board = quern.load_board("runs/played")
>>> game = board.game
>>> state = game.play(game.start(), 4)
>>> board.best_move(state, simulations=50) in game.legal(state)
True)";

inline constexpr const char* kBoardModelDoc =
    R"(The network of a board game, with weights that never change.

Any number of threads can use it. It can be pickled, to be sent to the actors of another process.

>>> quern.load_board("runs/played")
<quern.BoardModel runs/played: tictactoe, step 4, ... parameters>)";

inline constexpr const char* kBoardPathDoc = R"(The folder of the run.

>>> print(board.path)
runs/played)";

inline constexpr const char* kBoardConfigDoc = R"(The settings of the run, as a dict of dicts.

>>> board.config["selfplay"]["game"]
'tictactoe')";

inline constexpr const char* kBoardStepDoc = R"(The step after which the weights were saved.

>>> board.step
4)";

inline constexpr const char* kBoardParametersDoc = R"(The number of weights.

>>> board.parameters > 1000
True)";

inline constexpr const char* kBoardShapeDoc = R"((planes, rows, columns) of a position.

>>> board.shape
(2, 3, 3))";

inline constexpr const char* kBoardActionsDoc = R"(The number of actions.

>>> board.actions
9)";

inline constexpr const char* kBoardGameDoc =
    R"(The rules: a BuiltinGame, or the object that was passed; None if they are not known.

>>> board.game
<quern.BuiltinGame tictactoe>)";

inline constexpr const char* kBoardHashDoc = R"(SHA-256 of the weights: equal for equal runs.

>>> len(board.weights_hash)
64)";

inline constexpr const char* kBoardEvaluateDoc =
    R"(Returns (logits, outcomes) of positions: the network alone, without a search.

planes: (planes, rows, columns) or several of them, (B, planes, rows, columns), as play() of a game would show them to
the player to move. logits: (actions,) or (B, actions), of all actions, legal or not. outcomes: (3,) or (B, 3), the
probabilities that the player to move wins, draws and loses. Releases the GIL; the result for a position does not depend
on the others.

>>> game = board.game
>>> logits, outcomes = board.evaluate(np.stack([game.planes(game.start())] * 5))
>>> logits.shape, outcomes.shape
((5, 9), (5, 3)))";

inline constexpr const char* kBoardSearchDoc =
    R"(Returns what a search finds about each legal action, the best one first: (action, share, score).

share is that of the simulations, and score the expected result for the player to move, from -1 to 1. The search has no
noise, so the result is a function of the position, the weights and the number of simulations; with 0 it is the network
alone.

>>> action, share, score = board.search(board.game.parse("1425"), simulations=100)[0]
>>> action, score
(2, 1.0))";

inline constexpr const char* kBoardBestMoveDoc = R"(Returns the action that a search finds best; see search().

>>> board.best_move(board.game.parse("1425"))
2)";

inline constexpr const char* kBoardStateDictDoc = R"(Returns copies of the weights as float32 arrays, by name.

>>> sum(array.size for array in board.state_dict().values()) == board.parameters
True)";

}  // namespace quern::python
