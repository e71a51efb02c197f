"""Sequences and n-step returns: never across the end of an episode, also with threads and processes that are killed."""

import multiprocessing
import os
import signal
import threading
import time

import numpy as np
import pytest

import quern
from replay_rows import name

COLUMNS = {"actor": "int32", "episode": "int32", "step": "int32", "reward": "float32", "terminal": "bool",
           "truncated": "bool"}


def episodic(capacity=1000, **options):
    return quern.ReplayBuffer(COLUMNS, capacity, terminal="terminal", truncated="truncated", **options)


def play(writer, actor, episodes, start=0):
    """Episodes of 1 to 9 rows, every third one cut off."""
    for episode in range(start, start + episodes):
        length = 1 + (actor + episode) % 9
        for step in range(length):
            last = step + 1 == length
            writer.add(actor=actor, episode=episode, step=step, reward=float(step), terminal=last and episode % 3 != 0,
                       truncated=last and episode % 3 == 0)


def check_sequences(found):
    """Rows of one episode in their order; nothing after an end."""
    for i, length in enumerate(found.lengths.astype(int)):
        for column in ("actor", "episode"):
            assert (found[column][i, :length] == found[column][i, 0]).all()
        assert (np.diff(found["step"][i, :length]) == 1).all()
        assert not (found["terminal"] | found["truncated"])[i, :length - 1].any()
        assert found.mask[i].sum() == length and not found["reward"][i, length:].any()


def test_sequences_of_interleaved_threads():
    buffer = episodic(seed=1)
    threads = [threading.Thread(target=play, args=(buffer.writer(), actor, 300)) for actor in range(4)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads) or len(buffer) < 100:
        if len(buffer) > 100:
            check_sequences(buffer.sample_sequences(32, 3, pad=True))
    found = buffer.sample_sequences(200, 4)
    assert found["step"].shape == found.ids.shape == found.mask.shape == (200, 4)
    assert found.mask.all() and (found.lengths == 4).all() and len(found) == 200
    check_sequences(found)
    again = buffer.sample_sequences(200, 4, out=found)
    assert again["step"] is found["step"] and again.ids is found.ids
    assert list(buffer.sample_sequences(2, 2, columns=["step"])) == ["step"]


def test_n_step_returns_match_the_definition():
    buffer = episodic(seed=1)
    play(buffer.writer(), 0, 150)
    gamma = 0.9
    found = buffer.sample_n_step(500, n=3, gamma=gamma, next=["step", "episode"])
    for i in range(500):
        step, length, cut = found["step"][i], 1 + found["episode"][i] % 9, found["episode"][i] % 3 == 0
        left = length - step
        steps = 3 if left > 3 else left - cut
        assert found.steps[i] == steps > 0
        np.testing.assert_allclose(found.returns[i], sum(gamma**k * (step + k) for k in range(steps)), rtol=1e-6)
        terminal = left <= 3 and not cut
        np.testing.assert_allclose(found.discounts[i], 0 if terminal else gamma**int(steps), rtol=1e-6)
        assert found.next["episode"][i] == found["episode"][i]
        assert found.next["step"][i] == (length - 1 if terminal else step + steps)
    last = buffer.sample_n_step(500, n=3, gamma=gamma, last=["step"], columns=["step", "episode"])
    length = 1 + last["episode"] % 9
    np.testing.assert_array_equal(last.next["step"], np.minimum(last["step"] + 2, length - 1))
    assert buffer.sample_n_step(500, 3, gamma, last=["step"], out=last).returns is last.returns


def test_vector_environments_and_resets():
    buffer = episodic()
    writer = buffer.writer(streams=3)
    for step in range(10):
        writer.add_batch(actor=np.arange(3), episode=np.zeros(3, int), step=np.full(3, step), reward=np.zeros(3),
                         terminal=np.zeros(3, bool), truncated=np.zeros(3, bool), cast=True)
    found = buffer.sample_sequences(50, 10)
    check_sequences(found)
    assert set(found["actor"][:, 0]) == {0, 1, 2}
    with pytest.raises(quern.Error, match="expected a multiple of 3 rows, one for each stream, found 1"):
        play(writer, 1, 1)
    writer.reset()
    assert repr(writer) == "<quern.ReplayWriter of 3 streams>" and writer.streams == 3


def test_a_batch_is_a_piece_of_an_episode():
    buffer = quern.ReplayBuffer({"step": "int32", "done": "uint8"}, 100, terminal="done")
    for _ in range(5):
        buffer.add_batch(step=np.arange(6, dtype=np.int32), done=np.array([0, 0, 1, 0, 0, 0], np.uint8))
    found = buffer.sample_sequences(100, 3)
    assert {tuple(row) for row in found["step"]} == {(0, 1, 2), (3, 4, 5)}
    with pytest.raises(quern.Error, match="expected a row with 3 more in its episode"):
        buffer.sample_sequences(1, 4)
    with pytest.raises(quern.Error, match=r"writer = buffer.writer\(\) once per actor and then writer.add\(\)"):
        buffer.add(step=1, done=0)


def test_prioritised_sequences_and_snapshots(folder):
    buffer = episodic(prioritized=True)
    play(buffer.writer(), 0, 100)
    buffer.update_priorities(range(len(buffer)), np.where(np.arange(len(buffer)) == 10, 1, 0))
    assert (buffer.sample_sequences(20, 2, pad=True).ids[:, 0] == 10).all()
    buffer.save(folder / "s")
    loaded = quern.ReplayBuffer.from_snapshot(folder / "s")
    assert (loaded.terminal, loaded.truncated) == ("terminal", "truncated")
    check_sequences(loaded.sample_sequences(100, 3, rule="uniform"))
    assert loaded.sample_n_step(1, 1, 1.0, next=["step"]).ids[0] == 10


def actor_process(name, number):
    writer = quern.ReplayBuffer.attach(shared=name).writer()
    for start in range(0, 10**9, 10):
        play(writer, number, 10, start)


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_killed_actors_leave_no_wrong_sequence(name, method):
    buffer = episodic(3000, shared=name)
    context = multiprocessing.get_context(method)
    number = 0
    for _ in range(4):
        actors = [context.Process(target=actor_process, args=(name, number + i)) for i in range(2)]
        number += 2
        for actor in actors:
            actor.start()
        before = buffer.total_added
        while buffer.total_added < before + 2000:
            if len(buffer) > 500:
                check_sequences(buffer.sample_sequences(64, 3, pad=True))
                assert (buffer.sample_n_step(64, 2, 0.5, next=["step"]).steps >= 1).all()
        for actor in actors:
            os.kill(actor.pid, signal.SIGKILL)
            actor.join()
    check_sequences(buffer.sample_sequences(500, 5))


def test_errors_say_what_to_write():
    plain = quern.ReplayBuffer(COLUMNS, 10)
    buffer = episodic(10)
    play(buffer.writer(), 0, 3)
    for call, says in [
            (lambda: plain.writer(), "create it with terminal="),
            (lambda: plain.sample_sequences(1, 1), "expected a buffer with episodes"),
            (lambda: quern.ReplayBuffer(COLUMNS, 10, terminal="reward"), "column 'reward': expected bool or uint8"),
            (lambda: quern.ReplayBuffer(COLUMNS, 10, terminal="done"), "'done'"),
            (lambda: quern.ReplayBuffer(COLUMNS, 10, terminal="terminal", truncated="terminal"), "another column"),
            (lambda: buffer.sample_sequences(1, 11), "length: expected 1 to 10 rows, found 11"),
            (lambda: buffer.sample_n_step(1, 1, 1.0), "expected next=[names of the observation's columns]"),
            (lambda: buffer.sample_n_step(1, 1, 1.5, next=["step"]), "gamma: expected 0 to 1, found 1.5"),
            (lambda: buffer.sample_n_step(1, 1, 1.0, next=["obs"]), "expected one of the columns actor, episode"),
            (lambda: buffer.sample_n_step(1, 1, 1.0, next=["step"], reward="score"), "reward: expected one of"),
            (lambda: buffer.sample_n_step(1, 1, 1.0, next="step"), "expected a list of names")]:
        with pytest.raises(quern.Error) as error:
            call()
        assert says in str(error.value) and "\n" not in str(error.value), error.value
