"""A child of os.fork() uses and drops objects of its parent."""

import os
import signal

import numpy as np

import quern


def exit_code(body):
    """Of a child that runs body(); -14 when it hangs."""
    child = os.fork()
    if child == 0:
        signal.alarm(30)
        code = 1
        try:
            code = body()
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_a_child_drops_the_background_save_of_its_parent(folder):
    buffer = quern.ReplayBuffer({"x": ("float32", (1000,))}, capacity=20_000)
    buffer.add_batch(x=np.random.default_rng(1).random((20_000, 1000), np.float32))
    holder = [buffer.save_in_background(folder / "a.snapshot", threads=1)]

    def drop():
        try:
            holder[0].result()
        except ValueError as error:
            assert "child of fork()" in str(error)
            holder.clear()
            return 0
        return 2

    assert exit_code(drop) == 0
    assert holder[0].result().rows == 20_000
