"""quern.selfplay(), games in Python, load_board() and train_board()."""

import _thread
import multiprocessing
import pickle
import subprocess
import threading
import time

import numpy as np
import pytest

import quern
from conftest import QUERN, program, program_json

TINY = {"selfplay.generation_games": 10, "selfplay.generation_steps": 4, "selfplay.simulations": 10,
        "selfplay.cheap_simulations": 4, "selfplay.games_at_once": 5, "selfplay.rows": 200, "train.batch": 16,
        "model.width": 16, "model.layers": 1, "model.context": 9, "optimizer.warmup": 2, "selfplay.rating_interval": 0,
        "checkpoint.interval": 4}
LINES = [(0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6)]


class Nine(quern.Game):
    """Tic-tac-toe; 1 is a mark of the player to move, -1 of the opponent."""

    name, shape, actions, max_moves = "nine", (2, 3, 3), 9, 9
    symmetries = quern.game("tictactoe").symmetries

    def start(self):
        return (0,) * 9

    def legal(self, state):
        return [square for square in range(8, -1, -1) if state[square] == 0]  # in any order

    def play(self, state, action):
        return tuple(-1 if square == action else -mark for square, mark in enumerate(state))

    def result(self, state):
        if any(state[a] == state[b] == state[c] == -1 for a, b, c in LINES):
            return -1
        return None if 0 in state else 0

    def planes(self, state):
        board = np.array(state).reshape(3, 3)
        return np.stack([board == 1, board == -1]).astype(np.float32)


class Keyed(Nine):
    def key(self, state):
        return bytes(mark + 1 for mark in state)


def selfplay(game, out, steps=12, **options):
    settings = {**TINY, **options.pop("set", {})}
    return quern.selfplay(game, out=out, steps=steps, config=options.pop("config", quern.preset("tictactoe")),
                          set=settings, **options)


def error_of(call, kind=quern.Error):
    with pytest.raises(kind) as caught:
        call()
    assert "\n" not in str(caught.value)
    return caught.value


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    """The run of the built-in game."""
    return selfplay("tictactoe", tmp_path_factory.mktemp("built-in") / "run")


@pytest.mark.parametrize("game, threads", [(Nine(), 1), (Nine(), 2), (Keyed(), 2), (quern.game("tictactoe"), 3)])
def test_the_result_is_that_of_the_built_in_game_with_any_number_of_threads(folder, expected, game, threads):
    assert selfplay(game, folder / "run", threads=threads).weights_hash == expected.weights_hash


def test_the_result_is_that_of_the_program(folder, expected):
    flags = [flag for name, value in TINY.items() for flag in ("--set", f"{name}={value}")]
    program("selfplay", "tictactoe", "--run", folder / "run", "--steps", "12", *flags)
    assert program_json("info", "--run", folder / "run")["weights_hash"] == expected.weights_hash


@pytest.mark.parametrize("last", [3, 4, 6])
def test_a_run_that_is_stopped_and_resumed_equals_an_uninterrupted_one(folder, expected, last):
    part = selfplay(Nine(), folder / "run", on_step=lambda step: step.step < last)
    assert (part.step, part.finished) == (last, False)
    whole = quern.selfplay(Nine(), out=folder / "run", resume=True, threads=1)
    assert (whole.step, whole.finished, whole.weights_hash) == (12, True, expected.weights_hash)
    again = quern.selfplay(Nine(), out=folder / "run", resume=True)
    assert again.weights_hash == whole.weights_hash


def test_generations_are_reported_and_can_stop_a_run(folder, expected):
    seen = []
    selfplay("tictactoe", folder / "run", on_generation=lambda generation: seen.append(generation) or len(seen) < 2)
    assert [(g.generation, g.step, g.games) for g in seen] == [(0, 4, 10), (1, 8, 20)]
    assert 2 <= seen[0].game_length <= 9 and seen[0].elo is None and seen[0].positions > 0
    assert seen[0].first_wins + seen[0].draws <= 1 and seen[1].seconds > seen[0].seconds
    rated = []
    whole = quern.selfplay("tictactoe", out=folder / "run", resume=True, on_generation=rated.append,
                           set={"selfplay.rating_interval": 2, "selfplay.rating_games": 4}, steps=24)
    assert [g.step for g in rated] == [12, 16, 20, 24] and isinstance(rated[-1].elo, float)
    assert whole.finished and quern.load_board(folder / "run", checkpoint=24).step == 24


def test_an_asynchronous_run_of_a_game_in_python_learns(folder):
    result = selfplay(Nine(), folder / "run", steps=20, threads=2, set={"selfplay.synchronous": False})
    assert (result.step, result.finished) == (20, True)
    error = error_of(lambda: selfplay(Nine(), folder / "bad", set={"selfplay.synchronous": False, "selfplay.processes": 2}))
    assert str(error) == ("[config] selfplay.processes: expected 0, as actors of python:nine are threads, found 2")
    assert not (folder / "bad").exists()


def test_ctrl_c_saves_and_can_be_resumed(folder, expected):
    def interrupt(step):
        if step.step == 6:
            _thread.interrupt_main()

    with pytest.raises(KeyboardInterrupt):
        selfplay(Nine(), folder / "run", on_step=interrupt)
    assert 4 <= quern.load_board(folder / "run").step <= 8
    assert quern.selfplay(Nine(), out=folder / "run", resume=True).weights_hash == expected.weights_hash


def test_ctrl_c_ends_a_run_while_games_are_played(folder):
    class Slow(Nine):
        def play(self, state, action):
            time.sleep(0.01)
            return super().play(state, action)

    timer = threading.Timer(0.5, _thread.interrupt_main)
    timer.start()
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        selfplay(Slow(), folder / "run", set={"selfplay.generation_games": 1000})
    assert time.monotonic() - start < 30


BREACHES = {
    "legal": [(lambda s: [0, 9], "legal(): expected actions from 0 to 8, found 9"),
              (lambda s: [-1], "legal(): expected actions from 0 to 8, found -1"),
              (lambda s: [1.0], "legal(): expected actions from 0 to 8, found 1.0"),
              (lambda s: [True], "legal(): expected actions from 0 to 8, found True"),
              (lambda s: [3, 1, 3], "legal(): expected each action once, found 3 twice"),
              (lambda s: [], "legal(): expected actions, as result() is None, found none"),
              (lambda s: None, "legal(): expected a list of actions, found None")],
    "result": [(lambda s: 2, "result(): expected None, 1, 0 or -1 for the player to move, found 2"),
               (lambda s: True, "result(): expected None, 1, 0 or -1 for the player to move, found True"),
               (lambda s: "won", "result(): expected None, 1, 0 or -1 for the player to move, found 'won'"),
               (lambda s: None, "result(): expected a result after at most 9 moves (max_moves), found None")],
    "planes": [(lambda s: np.zeros((2, 3, 3)), "planes(): expected a float32 array of shape (2, 3, 3), found float64 of shape (2, 3, 3)"),
               (lambda s: np.zeros((2, 9), np.float32), "planes(): expected a float32 array of shape (2, 3, 3), found float32 of shape (2, 9)"),
               (lambda s: np.full((2, 3, 3), np.nan, np.float32), "planes(): expected finite numbers, found nan"),
               (lambda s: None, "planes(): expected a float32 array of shape (2, 3, 3), found None")],
    "key": [(lambda s: 1.5, "key(): expected bytes, a str or an int, found 1.5")],
    "play": [(lambda s, a: 1 / 0, "play(): expected it to return, found ZeroDivisionError: division by zero")],
}


@pytest.mark.parametrize("method, broken, says", [(m, *breach) for m, breaches in BREACHES.items() for breach in breaches])
def test_a_broken_game_is_one_clear_error_and_does_not_harm_the_run(folder, expected, method, broken, says):
    class Broken(Keyed):
        calls = 0

    def sometimes(self, state, *more):
        Broken.calls += 1
        return getattr(Keyed, method)(self, state, *more) if Broken.calls <= 300 else broken(state, *more)

    setattr(Broken, method, sometimes)  # breaks in an actor's thread
    error = error_of(lambda: selfplay(Broken(), folder / "run", threads=2))
    assert str(error) == "[game] nine: " + says
    assert isinstance(error.__cause__, ZeroDivisionError if method == "play" else type(None))
    if broken is BREACHES[method][0][0]:
        assert quern.selfplay(Nine(), out=folder / "run", resume=True).weights_hash == expected.weights_hash


def test_an_exception_without_a_printable_message_is_reported_too(folder):
    class Silent(Exception):
        def __str__(self):
            raise ValueError

    for exception, says in ((ValueError("\ud800"), "ValueError: ValueError('\\ud800')"), (Silent(), "Silent: ")):
        class Broken(Nine):
            def play(self, state, action):
                raise exception

        error = error_of(lambda: selfplay(Broken(), folder / type(exception).__name__, threads=2))
        assert says in str(error)
        assert error.__cause__ is exception


def test_games_that_cannot_be_played_are_refused_before_anything_is_written(folder):
    def error(**attributes):
        return str(error_of(lambda: selfplay(type("Nine", (Nine,), attributes)(), folder / "run")))

    assert error(name="a b") == "[game] name: expected 1 to 64 letters, digits, - and _, found 'a b'"
    assert error(shape=(3, 3)) == "[game] nine: shape: expected (planes, rows, columns), found (3, 3)"
    assert error(shape=(0, 3, 3)).startswith("[game] nine: shape: expected 1 to 4096, found 0")
    assert error(actions=9000).startswith("[game] nine: actions: expected")
    assert error(symmetries=[[0, 1]]).startswith("[game] nine: squares of symmetry 0: expected each number from 0 to 8 once")
    assert error(symmetries=5) == "[game] nine: symmetries: expected a list, found 5"
    assert error(start=lambda self: (-1,) * 9) == "[game] nine: result(): expected None for the state that start() returns, found a result"
    assert error(planes=lambda self, state: 0).startswith("[game] nine: planes(): expected a float32 array")
    assert str(error_of(lambda: selfplay("go", folder / "run"))) == "[games] name: expected tictactoe, connect4 or chess, found 'go'"
    assert "expected the name of a game or an object with its rules" in str(error_of(lambda: selfplay(Nine, folder / "run")))
    assert "expected a game with legal, found none" in str(error_of(lambda: selfplay(type("G", (), {"start": 0})(), folder / "run")))
    assert not (folder / "run").exists()


def test_a_resumed_run_needs_the_same_game(folder):
    selfplay(Nine(), folder / "run", steps=4)

    class Longer(Nine):
        max_moves = 10

    says = str(error_of(lambda: quern.selfplay(Longer(), out=folder / "run", resume=True, steps=8)))
    assert 'selfplay.sizes: expected "planes=2 rows=3 columns=3 actions=9 max_moves=9"' in says and "max_moves=10" in says
    says = str(error_of(lambda: quern.selfplay("tictactoe", out=folder / "run", resume=True)))
    assert says == f"[selfplay] {folder / 'run'}: expected a run of tictactoe, found one of python:nine"
    for arguments in (["selfplay", "--resume"], ["arena", "--against", "random"], ["play"]):
        done = subprocess.run([QUERN, *arguments, "--run", folder / "run"], capture_output=True, text=True, input="")
        assert done.returncode == 2 and len(done.stderr.splitlines()) == 1
        assert "python:nine: written in Python" in done.stderr, done.stderr
    assert program_json("info", "--run", folder / "run")["game"] == "python:nine"


def test_the_network_of_a_run_plays(folder):
    selfplay(Nine(), folder / "run", steps=4)
    board = quern.load_board(folder / "run", game=Nine())
    state = (0, 1, 1, -1, -1, 0, 0, 0, 0)
    moves = board.search(state, simulations=60)
    assert board.best_move(state) == moves[0][0] == 0 and moves[0][2] == 1.0  # wins at once
    assert sorted(action for action, _, _ in moves) == [0, 5, 6, 7, 8]
    planes = np.stack([Nine().planes(state)] * 3)
    logits, outcomes = board.evaluate(planes)
    assert logits.shape == (3, 9) and np.allclose(outcomes.sum(axis=1), 1, atol=1e-5)
    one = board.evaluate(planes[0])
    assert np.array_equal(one[0], logits[2]) and np.array_equal(one[1], outcomes[2])
    assert board.evaluate(planes[:0])[0].shape == (0, 9)
    assert "expected shape (2, 3, 3)" in str(error_of(lambda: board.evaluate(np.zeros((3, 3), np.float32))))
    assert "found the end of a game" in str(error_of(lambda: board.best_move((-1, -1, -1, 1, 1, 0, 1, 0, 0))))
    alone = quern.load_board(folder / "run")
    assert alone.game is None and np.array_equal(alone.evaluate(planes)[0], logits)
    assert "pass them to load_board(run, game=...)" in str(error_of(lambda: alone.best_move(state)))
    assert "game: expected python:nine" in str(error_of(lambda: quern.load_board(folder / "run", game="tictactoe")))
    copy = pickle.loads(pickle.dumps(alone))
    assert np.array_equal(copy.evaluate(planes)[0], logits) and copy.weights_hash == board.weights_hash


def test_built_in_games_have_the_methods_of_a_game(folder):
    game, chance = quern.game("connect4"), np.random.default_rng(3)
    for _ in range(20):
        state, moves = game.start(), ""
        while game.result(state) is None:
            assert game.parse(moves).text == state.text == moves
            assert game.planes(state).shape == game.shape and game.planes(state)[2].max() == state.player
            action = int(chance.choice(game.legal(state)))
            moves += game.action_text(state, action)
            assert game.parse_action(state, moves[-1]) == action
            state = game.play(state, action)
        assert game.legal(state) == [] and game.result(state) in (-1, 0)
    assert "the game is over" in str(error_of(lambda: game.play(state, 0)))
    assert "expected one of the legal actions, found 7" in str(error_of(lambda: game.play(game.start(), 7)))
    assert "found one of chess" in str(error_of(lambda: game.legal(quern.game("chess").start())))
    nine, theirs = Nine(), quern.game("tictactoe")
    state, there = nine.start(), theirs.start()
    for action in (4, 0, 8, 2, 6, 7, 3):
        assert np.array_equal(nine.planes(state), theirs.planes(there))
        assert (sorted(nine.legal(state)), nine.result(state)) == (theirs.legal(there), theirs.result(there))
        state, there = nine.play(state, action), theirs.play(there, action)


COLUMNS = {"planes": ("float32", (2, 3, 3)), "policy": ("float32", (9,)), "outcome": ("float32", (3,))}


def add_rows(buffer, seed, stop):
    """Positions in which the best move is the first free square."""
    random = np.random.default_rng(seed)
    while not stop.is_set():
        planes = (random.random((8, 2, 3, 3)) < 0.3).astype(np.float32)
        planes[:, :, 2, 2] = 0
        taken = planes.reshape(8, 2, 9).max(axis=1) > 0
        policy = np.where(taken, -1, 0).astype(np.float32)
        policy[np.arange(8), taken.argmin(axis=1)] = 1
        outcome = np.eye(3, dtype=np.float32)[(planes[:, 0].sum(axis=(1, 2)) % 3).astype(int)]
        try:
            buffer.add_batch(planes=planes, policy=policy, outcome=outcome, timeout=0.2)
        except TimeoutError:
            pass


def train_board(buffer, out, steps=40, **options):
    return quern.train_board(buffer, out=out, steps=steps, batch=16,
                             set={"model.width": 16, "model.layers": 1, "optimizer.warmup": 2, "selfplay.symmetries": False},
                             **options)


@pytest.mark.parametrize("kind", [threading.Thread, multiprocessing.get_context("spawn").Process])
def test_positions_of_others_are_trained_while_they_are_added(folder, kind):
    shared = None if kind is threading.Thread else f"own-{folder.name}"
    buffer = quern.ReplayBuffer(COLUMNS, 500, shared=shared, samples_per_insert=4, min_size=50, slack=64)
    stop = threading.Event() if shared is None else multiprocessing.get_context("spawn").Event()
    writers = [kind(target=add_rows, args=(buffer, seed, stop)) for seed in range(2 if shared is None else 1)]
    for writer in writers:
        writer.start()
    try:
        published, losses = [], []
        result = train_board(buffer, folder / "run", publish=published.append, publish_interval=15,
                             on_step=lambda step: losses.append(step.loss))
        assert result.finished and len(losses) == 40 and np.mean(losses[-5:]) < np.mean(losses[:5])
        assert [board.step for board in published] == [0, 15, 30, 40]
        samples = 40 * 16
        assert samples / 4 - 64 <= buffer.total_added <= samples / 4 + 50 + 64 + 2 * 16
        board = quern.load_board(folder / "run")
        assert board.step == 40 and board.weights_hash == published[-1].weights_hash == result.weights_hash
        assert board.config["selfplay"]["sizes"] == "planes=2 rows=3 columns=3 actions=9 max_moves=0"
        again = quern.train_board(buffer, out=folder / "run", steps=50, resume=True)
        assert (again.step, again.finished) == (50, True)
    finally:
        stop.set()
        for writer in writers:
            writer.join()
        if shared:
            quern.ReplayBuffer.remove(shared=shared)


def filled(rows=64, **changes):
    buffer = quern.ReplayBuffer(COLUMNS, 200)
    values = {"planes": np.zeros((rows, 2, 3, 3), np.float32), "policy": np.full((rows, 9), 1 / 9, np.float32),
              "outcome": np.tile(np.float32([0.5, 0, 0.5]), (rows, 1))}
    for name, value in changes.items():
        values[name][:] = value
    buffer.add_batch(values)
    return buffer


def test_a_buffer_that_does_not_change_gives_one_result_with_interruptions(folder):
    buffer = filled()
    whole = train_board(buffer, folder / "whole", threads=1)
    part = train_board(buffer, folder / "parts", threads=2, on_step=lambda step: step.step < 23)
    assert (part.step, part.finished) == (23, False)
    rest = quern.train_board(buffer, out=folder / "parts", resume=True)
    assert rest.finished and rest.weights_hash == whole.weights_hash


def test_buffers_and_rows_that_cannot_be_trained_on_are_errors(folder):
    def error(buffer, **options):
        return str(error_of(lambda: train_board(buffer, folder / "run", steps=6, **options)))

    columns = "expected the columns planes float32 (P, R, C), policy float32 (A,) and outcome float32 (3,), in this order, found "
    assert columns in error(quern.ReplayBuffer({"x": "float32"}, 10))
    assert "column 2: expected 'outcome' float32 (3,), found 'value' float32 ()" in error(
        quern.ReplayBuffer({"planes": COLUMNS["planes"], "policy": COLUMNS["policy"], "value": "float32"}, 10))
    assert "column 0: expected 'planes' float32 (2, 3, 3), found 'planes' uint8 (2, 3, 3)" in error(
        quern.ReplayBuffer({**COLUMNS, "planes": ("uint8", (2, 3, 3))}, 10))
    assert error([1]) == "[train_board] buffer: expected a ReplayBuffer, found [1]"
    assert "symmetry 0" in error(filled(), symmetries=[[0, 1]])
    assert not (folder / "run").exists()
    for changes, says in (({"planes": np.inf}, "planes: expected finite numbers, found inf"),
                          ({"policy": -1}, "policy: expected a sum of 1, found 0"),
                          ({"policy": 0.5}, "policy: expected a sum of 1, found 4.5"),
                          ({"outcome": -1}, "outcome: expected probabilities, found -1")):
        run = folder / says.replace(" ", "-")
        text = str(error_of(lambda: train_board(filled(**changes), run, steps=6)))
        assert text.startswith("[selfplay] row ") and text.endswith("of the buffer: " + says), text
    assert train_board(filled(), run, steps=6, resume=True).finished  # the run is not harmed


def test_a_wait_for_positions_ends_by_ctrl_c(folder):
    timer = threading.Timer(0.5, _thread.interrupt_main)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        train_board(quern.ReplayBuffer(COLUMNS, 100), folder / "empty")
    buffer = quern.ReplayBuffer(COLUMNS, 100, samples_per_insert=1, min_size=10)
    buffer.add_batch(planes=np.zeros((20, 2, 3, 3), np.float32), policy=np.full((20, 9), 1 / 9, np.float32),
                     outcome=np.full((20, 3), 1 / 3, np.float32))
    timer = threading.Timer(0.5, _thread.interrupt_main)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        train_board(buffer, folder / "limited")


def test_settings_of_other_runs_are_refused(folder):
    assert "did you mean" in str(error_of(lambda: quern.selfplay("tictactoe", out=folder / "run", rate=1)))
    assert "[selfplay] on_generation: expected a function, found 3" in str(
        error_of(lambda: quern.selfplay("tictactoe", out=folder / "run", on_generation=3)))
    assert "model.context: expected 9" in str(error_of(lambda: selfplay("tictactoe", folder / "run", set={"model.context": 10})))
    assert not (folder / "run").exists()
