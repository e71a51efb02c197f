"""Rows of a replay buffer for tests: they differ, and tell which they are."""

import uuid

import numpy as np
import pytest

import quern

COLUMNS = {"planes": ("float32", (3, 4)), "move": "int16", "policy": quern.Column("float32", (40,), "sparse", max_nonzero=5),
           "mask": quern.Column("uint8", (3, 7), encoding="bits")}


def rows(n, start=0):
    """Rows that differ, and that tell which they are."""
    number = np.arange(start, start + n)
    policy = np.zeros((n, 40), np.float32)
    policy[np.arange(n), number % 40] = number + 0.5
    return {"planes": (number[:, None, None] + np.arange(12).reshape(3, 4) / 16).astype(np.float32),
            "move": (number % 30_000).astype(np.int16), "policy": policy,
            "mask": (number[:, None, None] >> np.arange(21).reshape(3, 7) & 1).astype(np.uint8)}


def same(found, expected):
    assert set(found) == set(expected)
    for name, array in expected.items():
        assert found[name].dtype == array.dtype
        np.testing.assert_array_equal(found[name], array)


@pytest.fixture
def buffer():
    return quern.ReplayBuffer(COLUMNS, capacity=100, seed=1)


@pytest.fixture
def name():
    text = f"test-{uuid.uuid4().hex}"
    yield text
    quern.ReplayBuffer.remove(shared=text)
