"""Numbers of Python and NumPy arrive as they are, or are refused in one line: none is truncated, wrapped or dropped."""

import decimal
import fractions
import warnings

import numpy as np
import pytest

import quern

INF, NAN = float("inf"), float("nan")
HUGE = 10**5000  # more digits than Python prints


def refuses(call, *says):
    """A quern.Error of one line, and no warning on the way: a warning would mean that something was converted."""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        with pytest.raises(quern.Error) as caught:
            call()
    assert not warned
    text = str(caught.value)
    assert "\n" not in text and all(part in text for part in says), text


def stored(dtype, value, shape=()):
    """What is in the buffer after add()."""
    buffer = quern.ReplayBuffer({"x": (dtype, shape)}, capacity=1)
    buffer.add(x=value)
    return np.asarray(buffer.get(0)["x"])


# Column dtype, value, what is stored.
EXACT = [
    ("float32", 0.1, np.float32(0.1)), ("float32", 1e-300, 0), ("float32", 3.4028235e38, np.float32(3.4028235e38)),
    ("float32", INF, INF), ("float32", -INF, -INF), ("float32", 2**24, 2**24), ("float32", 2**127, np.float32(2**127)),
    ("float32", True, 1), ("float32", fractions.Fraction(1, 4), 0.25), ("float32", decimal.Decimal("0.5"), 0.5),
    ("float16", 65519.9, 65504), ("float16", 2048, 2048), ("float64", 2**53, 2**53), ("float64", np.float32(0.1), np.float32(0.1)),
    ("int8", -128, -128), ("int8", 127, 127), ("int8", np.uint64(5), 5), ("uint8", 255, 255), ("uint8", True, 1),
    ("int64", -2**63, -2**63), ("int64", 2**63 - 1, 2**63 - 1), ("uint64", 2**64 - 1, 2**64 - 1), ("bool", 1, True),
    ("bool", np.bool_(True), True), ("int16", np.int64(-7), -7),
]


@pytest.mark.parametrize("dtype, value, expected", EXACT)
def test_exact_values_are_stored(dtype, value, expected):
    found = stored(dtype, value)
    assert found.dtype == np.dtype(dtype) and found == np.asarray(expected, dtype)


def test_nan_is_stored():
    assert np.isnan(stored("float32", NAN)) and np.isnan(stored("float16", [NAN, 1.0], (2,))[0])


def test_a_list_of_large_integers_is_exact():
    """NumPy makes floats of such a list, and 2**63 + 1 is no float."""
    values = [2**63 + 1, 1, 0]
    assert stored("uint64", values, (3,)).tolist() == values
    assert stored("uint64", [[2**64 - 1], [7]], (2, 1)).tolist() == [[2**64 - 1], [7]]


# Column dtype, value, what the message says was found.
REFUSED = [
    ("float32", 1e300, "1e+300"), ("float32", -1e39, "-1e+39"), ("float16", 65520.0, "65520"), ("float16", 1e6, "1000000"),
    ("float32", 2**24 + 1, "16777217"), ("float64", 2**53 + 1, "9007199254740993"), ("float16", 2049, "2049"),
    ("float16", 70_000, "70000"), ("float64", 10**400, "found"), ("float64", fractions.Fraction(10**400), "found"),
    ("float32", 1 + 2j, "1+2j"), ("float32", 1 + 0j, "1+0j"), ("float32", np.complex64(1 + 2j), "1+2j"), ("float64", [1j], "1j"),
    ("float32", "1.5", "'1.5'"), ("float32", b"1", "b'1'"), ("float32", None, "None"), ("float32", [None], "None"),
    ("float32", np.datetime64("2020-01-01"), "2020"), ("float32", frozenset(), "frozenset()"), ("float32", np.longdouble(1), "found"),
    ("int8", 128, "128"), ("int8", -129, "-129"), ("uint8", 256, "256"), ("uint8", -1, "-1"), ("int32", 2**31, "2147483648"),
    ("int64", 2**63, "9223372036854775808"), ("uint64", -1, "-1"), ("uint64", 2**64, "18446744073709551616"),
    ("int64", -2**63 - 1, "-9223372036854775809"), ("int32", 1.5, "1.5"), ("int32", 3.0, "3.0"), ("int32", NAN, "nan"),
    ("int32", INF, "inf"), ("int32", np.float32(2), "2.0"), ("int32", 1j, "1j"), ("int32", "7", "'7'"), ("int64", HUGE, "an object of type int"),
    ("bool", 2, "2"), ("bool", -1, "-1"), ("bool", 1.0, "1.0"), ("bool", "True", "'True'"),
]


@pytest.mark.parametrize("dtype, value, found", REFUSED, ids=range(len(REFUSED)))
def test_inexact_values_are_refused(dtype, value, found):
    refuses(lambda: stored(dtype, value), f"[replay] add: column 'x': expected values of {dtype}, found ", found)


def test_a_dict_is_no_value():
    refuses(lambda: stored("float32", {}), "[replay] add: column 'x': expected columns in the dict, found none")


def test_the_element_is_named():
    refuses(lambda: stored("int8", [1, 2, 300], (3,)), "found 300 at element 2")
    refuses(lambda: stored("int64", [2**53 + 1, 0.0], (2,)), "found 0.0 at element 1")
    refuses(lambda: stored("float32", [[0.0, 1e300]], (1, 2)), "found 1e+300 at element 1")


@pytest.fixture
def prioritised():
    buffer = quern.ReplayBuffer({"x": "int32"}, capacity=8, prioritised=True, alpha=1.0)
    buffer.add_batch(x=np.arange(4, dtype=np.int32))
    return buffer


@pytest.mark.parametrize("ids, found", [
    ([0.9], "0.9"), (np.array([1.0]), "float64"), ([1.0, 2], "1.0"), ([-1], "-1"), (np.array([0, -3]), "-3 at element 1"),
    ([2**64], "18446744073709551616"), (["1"], "'1'"), ([None], "None"), ([1 + 1j], "1j"), (np.array(["0"], object), "object"),
    (np.array([1], "M8[s]"), "datetime64"), ([[1], [2, 3]], "[[1], [2, 3]]"), (NAN, "nan")])
def test_ids_must_be_integers(prioritised, ids, found):
    """A float lost its fraction, and -1 became 2**64 - 1."""
    refuses(lambda: prioritised.update_priorities(ids, np.ones(1)),
            "[replay] update_priorities: ids: expected values of uint64, found ", found)


def test_ids_of_every_kind_of_integer(prioritised):
    for ids in ([0, 1], (0, 1), np.array([0, 1], np.int8), np.array([0, 1], np.uint64), np.array([0, 9, 1, 9], np.int64)[::2],
                [2**63 + 1, 0, 1]):
        assert prioritised.update_priorities(ids, np.ones(len(ids))) == 2


def test_priorities_are_real_numbers(prioritised):
    for bad, found in [([1e39], "1e+39"), ([1j], "1j"), (["1"], "'1'"), ([None], "None"), (np.array([1j]), "complex128"), ([2**70 + 1], "found")]:
        refuses(lambda: prioritised.update_priorities([0], bad), "priorit", found)
        refuses(lambda: prioritised.add_batch(x=np.zeros(1, np.int32), priorities=bad), "priorit", found)
        if bad[0] is not None:  # which is none
            refuses(lambda: prioritised.add(x=1, priority=bad[0]), "priorit")
    refuses(lambda: prioritised.add(x=1, priority=NAN), "finite")
    assert prioritised.total_added == 4


def test_a_tiny_priority_is_not_zero(prioritised):
    """As a float32 it was 0, and the row was never drawn."""
    prioritised.update_priorities([0, 1, 2, 3], [0, 0, 1e-300, 0])
    assert set(prioritised.sample(5, rule="prioritised")["x"]) == {2}
    prioritised.update_priorities([2], np.zeros(1, np.float32))
    prioritised.add(x=9, priority=1e-60)
    assert set(prioritised.sample(5, rule="prioritised")["x"]) == {9}


def test_arrays_must_have_the_dtype():
    """add_batch converts nothing: rows go straight from the arrays into the buffer."""
    buffer = quern.ReplayBuffer({"x": "float32"}, capacity=4)
    for dtype in ("float64", "float16", "int64", "bool", "complex64", "object", "U1"):
        refuses(lambda: buffer.add_batch(x=np.ones(2, dtype)), "column 'x': expected float32 (rows,), found ")
    assert buffer.total_added == 0


COLUMNS = {"x": "float32"}


BAD_OPTIONS = [
    ("capacity", 2.5, "[replay] capacity: expected a whole number from 1, found 2.5"),
    ("capacity", np.float32(3), "[replay] capacity: expected a whole number from 1, found 3.0"),
    ("capacity", decimal.Decimal(3), "[replay] capacity: expected a whole number from 1, found Decimal('3')"),
    ("capacity", 2**64, "[replay] capacity: expected 1 to 18446744073709551615, found 18446744073709551616"),
    ("capacity", HUGE, "[replay] capacity: expected 1 to 18446744073709551615, found an object of type int"),
    ("min_size", 1.0, "[replay] min_size: expected a whole number from 1, found 1.0"),
    ("alpha", np.complex64(1 + 2j), "[replay] alpha: expected a number, found (1+2j)"),
    ("alpha", "1", "[replay] alpha: expected a number, found '1'"),
    ("alpha", NAN, "[replay] alpha: expected a number from 0, found nan"),
    ("alpha", 10**400, "[replay] alpha: expected a number that is a float64, found "),
    ("slack", [1.0], "[replay] slack: expected a number, found [1.0]"),
    ("slack", INF, "slack: expected a finite number, 0 or more, found inf"),
    ("samples_per_insert", np.array([1.0, 2.0]), "[replay] samples_per_insert: expected a number, found array([1., 2.])"),
    ("seed", 1.0, "[replay] seed: expected a whole number from 0, found 1.0"),
]


@pytest.mark.parametrize("option, bad, says", BAD_OPTIONS, ids=range(len(BAD_OPTIONS)))
def test_options_of_a_buffer(option, bad, says):
    refuses(lambda: quern.ReplayBuffer(COLUMNS, **{"capacity": 5, "prioritised": True, option: bad}), says)


def test_options_of_a_sample(prioritised):
    sample = prioritised.sample
    refuses(lambda: sample(np.float32(2.7)), "[replay] sample: n: expected a whole number from 1, found 2.7")
    refuses(lambda: sample(2**64), "[replay] sample: n: expected 1 to 18446744073709551615")
    refuses(lambda: sample(2**63), "[replay] sample: n: expected 1 to 9223372036854775807, found 9223372036854775808")
    refuses(lambda: sample(1, rule="prioritised", beta=np.complex64(1j)), "[replay] sample: beta: expected a number, found 1j")
    refuses(lambda: sample(1, rule="prioritised", beta=NAN), "beta: expected a finite number")
    refuses(lambda: sample(1, rule="recent", half_life="10"), "[replay] sample: half_life: expected a number, found '10'")
    refuses(lambda: sample(1, rule="recent", half_life=INF), "half_life: expected a finite number")
    refuses(lambda: sample(1, timeout=NAN), "timeout: expected seconds or None, found nan")
    with pytest.raises(quern.Error, match="timeout: expected seconds or None, found 1j"):
        sample(1, timeout=np.complex64(1j))
    assert len(sample(np.uint8(3), timeout=INF, beta=np.float32(0.5), half_life=2)) == 3
    refuses(lambda: prioritised.get(1.0), "[replay] get: id: expected a whole number from 0, found 1.0")
    refuses(lambda: setattr(prioritised, "draws", 1.5), "[replay] draws: expected a whole number from 0, found 1.5")
    prioritised.draws = 2**64 - 2
    assert prioritised.draws == 2**64 - 2


def test_columns():
    refuses(lambda: quern.Column("float32", 10, "sparse", max_nonzero=np.float32(2.5)), "max_nonzero: expected a whole number from 0, found 2.5")
    refuses(lambda: quern.Column("float32", 2.0), "shape: expected whole numbers from 1, found 2.0")
    refuses(lambda: quern.Column("float32", (2.0,)), "shape: expected a whole number from 1, found 2.0")
    refuses(lambda: quern.Column("float32", None), "shape: expected whole numbers from 1, found None")
    assert quern.Column("float32", np.int64(3)).shape == quern.Column("float32", np.array([3])).shape == (3,)


def test_settings(folder):
    train = lambda **options: quern.train(out=folder / "run", **options)
    refuses(lambda: train(steps=np.float32(2.7)), "steps: train.steps: expected a whole number from 0 to 1000000000, found 2.7")
    refuses(lambda: train(steps=2**64), "train.steps: expected a whole number from 0 to 1000000000, found '18446744073709551616'")
    refuses(lambda: train(threads=np.float32(2)), "threads: expected a whole number from 1 to 64, found 2.0")
    refuses(lambda: train(threads=2**80), f"threads: expected 1 to 64, found {2**80}")
    refuses(lambda: train(set={"train.batch": 2.0}), "train.batch: expected a whole number from 1 to 1000000, found 2")
    refuses(lambda: train(set={"optimizer.rate": np.complex64(1j)}), "'optimizer.rate': expected a number, a string", "complex64")
    refuses(lambda: train(set={"optimizer.rate": 10**400}), "optimizer.rate: expected a number from 0 to 10, found '1000")
    refuses(lambda: train(set={"optimizer.clip": 2**53 + 1}), "optimizer.clip: expected a number from 0 to 1000000000, found 9007199254740993")
    assert not (folder / "run").exists()


def test_model_arguments_are_converted_exactly(run):
    model = quern.load(run)
    for option, bad, says in [
            ("tokens", 2.5, "[generate] tokens: expected a whole number, found 2.5"),
            ("tokens", np.float32(3), "[generate] tokens: expected a whole number, found 3.0"),
            ("tokens", 2**63, "[generate] tokens: expected a whole number of 64 bits, found 9223372036854775808"),
            ("top_k", 1.5, "[generate] top_k: expected a whole number, found 1.5"),
            ("top_k", -2**70, "[generate] top_k: expected a whole number of 64 bits, found -1180591620717411303424"),
            ("temperature", 1e300, "[generate] temperature: expected a number of at most 3.40282e+38, found 1e+300"),
            ("temperature", np.complex128(1j), "[generate] temperature: expected a number, found 1j"),
            ("temperature", NAN, "[generate] temperature: expected 0 or more, found nan"),
            ("temperature", "1", "[generate] temperature: expected a number, found '1'"),
            ("top_p", 2**53 + 1, "[generate] top_p: expected a number that is a float64, found 9007199254740993"),
            ("min_p", "0.1", "[generate] min_p: expected a number, found '0.1'"),
            ("repeat_penalty", NAN, "[generate] repeat_penalty: expected more than 0 (1 for none), found nan"),
            ("repeat_window", 2.0, "[generate] repeat_window: expected a whole number from 0 to 1048576, found 2.0"),
            ("threads", 1.0, "threads: expected a whole number from 1 to 64, found 1.0")]:
        refuses(lambda: model.generate("Once", **{option: bad}), says)
        refuses(lambda: model.stream("Once", **{option: bad}), says)
    for bad, says in [([1.0], "expected whole numbers, found float64"), ([True], "found bool"), (["1"], "found <U1"),
                      ([2**70], "found object"), ([1j], "found complex128"), ([[1], [1, 2]], "expected an array")]:
        for function in (model.decode, model.logits, model.loss):
            refuses(lambda: function(bad), "[model] tokens: ", says)
    refuses(lambda: model.decode([-1]), "-1")
    refuses(lambda: model.logits([1], threads=np.float32(1)), "threads: expected a whole number from 1 to 64, found 1.0")


@pytest.mark.parametrize("dtype, values", [
    ("float64", [2**53 + 1, 0.5]), ("float32", [2**24 + 1, 0.5]), ("float16", (2049, 0.5)),
    ("float64", [np.uint64(2**64 - 1), -1]), ("float32", [0.5, np.int64(2**24 + 1)])])
def test_integers_mixed_with_floats_must_be_exact(dtype, values):
    """NumPy makes floats of such a list, and rounds the whole number."""
    refuses(lambda: stored(dtype, values, (2,)), "x", f"expected values of {dtype}", "at element")
    nested = [[0.5, 1], list(values)]
    refuses(lambda: stored(dtype, nested, (2, 2)), "x", f"expected values of {dtype}", "at element")


def test_integers_mixed_with_floats():
    assert stored("float32", [2**24, 0.5, True, np.float32(0.25)], (4,)).tolist() == [2**24, 0.5, 1, 0.25]
    buffer = quern.ReplayBuffer({"x": "float32"}, capacity=2, prioritised=True)
    buffer.add_batch(x=np.zeros(2, np.float32))
    refuses(lambda: buffer.update_priorities([0, 1], [2**53 + 1, 0.5]), "float64")
    buffer.update_priorities([0, 1], [3, 0.5])
