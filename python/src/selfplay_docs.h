// Docstrings of self-play. tests/python/package_test.py runs the examples.
#pragma once

namespace quern::python {

inline constexpr const char* kSelfplayDoc =
    R"(Learns a board game by self-play and returns a TrainResult; `out` is the folder of the run.

game: "tictactoe", "connect4", "chess", a game from quern.game(), or an object with rules that are written in Python;
see help(quern.Game). Actors, which are threads, play games in which a tree search with the newest network chooses every
move; the network learns to foresee the search's moves and the results. `config` (a TOML file, or a dict as returned by
preset("connect4")) and `set` override the settings of the game; `steps` and `threads` override both. The defaults of a
game of your own are for a small board.

The result is bit-identical for any number of threads and interruptions, and to that of `quern selfplay` with the same
settings, unless set={"selfplay.synchronous": False}, which is faster.

on_step, resume and progress are those of train(). To resume, pass the game again; its sizes must be the same. If a
game of your own raises, or breaks its contract, so does selfplay(), with a quern.Error whose __cause__ is the exception
of the game; mend it and resume. on_generation is called with a Generation after the games that were played with the
same weights were trained on; it can stop the run as on_step can.

>>> result = quern.selfplay("tictactoe", out="runs/nine", steps=4,
...                         set={"selfplay.generation_games": 8, "selfplay.generation_steps": 2})
>>> result.finished
True
>>> board = quern.load_board("runs/nine"))";

inline constexpr const char* kTrainBoardDoc =
    R"(Trains a board network on positions that your own actors add to a ReplayBuffer; returns a TrainResult.

buffer: a ReplayBuffer with the columns planes float32 (P, R, C), policy float32 (A,), with shares of sum 1 and -1 for
moves that are not legal, and outcome float32 (3,), the probabilities that the player to move wins, draws and loses. Its
shape decides the network's. Threads and, if the buffer is shared, other processes add rows meanwhile; the buffer's rate
limit (samples_per_insert, min_size) makes adding and training wait for each other. Without rows, training waits.

publish is called with a BoardModel, the weights for the actors, before the first step and after every publish_interval
steps (50); a BoardModel can be pickled, so that it can be sent to other processes. Checkpoints are saved at the same
steps, without the rows: buffer.save() is for these.

rate is the learning rate, batch the number of positions per step. symmetries: a list of (squares, actions), as in a
quern.Game; each position is trained as seen under a random one. The settings in `config` and `set`, and on_step, resume
and progress, are those of selfplay(). To resume, pass a buffer of the same columns.

>>> rows = quern.ReplayBuffer({"planes": ("float32", (2, 3, 3)), "policy": ("float32", (9,)),
...                            "outcome": ("float32", (3,))}, capacity=1000)
>>> rows.add_batch(planes=np.zeros((8, 2, 3, 3), np.float32), policy=np.full((8, 9), 1 / 9, np.float32),
...                outcome=np.tile(np.float32([0, 1, 0]), (8, 1)))
7
>>> result = quern.train_board(rows, out="runs/own", steps=3)
>>> logits, outcomes = quern.load_board("runs/own").evaluate(np.zeros((2, 3, 3), np.float32)))";

inline constexpr const char* kGenerationDoc =
    R"(Games that were played with the same weights and trained on, passed to the on_generation callback of selfplay().

>>> generation
<quern.Generation 1: step 4, 16 games, ... positions>)";

inline constexpr const char* kGenerationNumberDoc = R"(The number of the generation, counted from 0.

>>> generation.generation
1)";

inline constexpr const char* kGenerationStepDoc = R"(The last step that trained on it.

>>> generation.step
4)";

inline constexpr const char* kGenerationGamesDoc = R"(The number of games of the run so far.

>>> generation.games
16)";

inline constexpr const char* kGenerationPositionsDoc = R"(The number of positions in the replay buffer.

>>> generation.positions > 0
True)";

inline constexpr const char* kGameLengthDoc = R"(The mean number of moves of its games.

>>> 2 < generation.game_length <= 9
True)";

inline constexpr const char* kFirstWinsDoc = R"(The share of its games that the player who began has won.

>>> 0 <= generation.first_wins <= 1
True)";

inline constexpr const char* kGenerationDrawsDoc = R"(The share of its games that were drawn.

>>> 0 <= generation.draws <= 1
True)";

inline constexpr const char* kGamesPerSDoc = R"(Games per second, training included.

>>> generation.games_per_s > 0
True)";

inline constexpr const char* kGenerationSecondsDoc = R"(Duration of the run so far, in seconds.

>>> generation.seconds > 0
True)";

inline constexpr const char* kEloDoc =
    R"(The strength at the last rating, in Elo above the first network; None before the first rating.

>>> generation.elo is None
True)";

}  // namespace quern::python
