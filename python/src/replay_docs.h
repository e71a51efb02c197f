// Docstrings of replay buffers. tests/python/package_test.py runs the examples.
#pragma once

namespace quern::python {

inline constexpr const char* kColumnDoc = R"(Type, shape and encoding of a column of a ReplayBuffer.

>>> quern.Column("float32", (119, 8, 8), encoding="bits").stored_bytes
952)";

inline constexpr const char* kColumnInitDoc = R"(Creates a column; shape is that of one row.

encoding is how the buffer stores the column; it does not affect the dtype and shape of the arrays that are added and
sampled. "raw": unchanged. "bits": one bit per element, for zeros and ones only. "sparse": index and value of up to
`max_nonzero` nonzero elements.

>>> quern.Column("float32", (4672,), encoding="sparse", max_nonzero=256)
quern.Column('float32', (4672,), encoding='sparse', max_nonzero=256))";

inline constexpr const char* kColumnDtypeDoc = R"(The dtype of the arrays.

>>> buffer.columns["value"].dtype
dtype('float32'))";

inline constexpr const char* kColumnShapeDoc = R"(The shape of one row.

>>> buffer.columns["planes"].shape
(2, 8, 8))";

inline constexpr const char* kColumnEncodingDoc = R"(How the buffer stores the column: raw, bits or sparse.

>>> buffer.columns["planes"].encoding
'raw')";

inline constexpr const char* kColumnMaxNonzeroDoc =
    R"(Maximum number of nonzero elements in a row of a sparse column.

>>> quern.Column("float32", 100, encoding="sparse", max_nonzero=7).max_nonzero
7)";

inline constexpr const char* kColumnStoredBytesDoc = R"(Size of one row of the column in the buffer, in bytes.

>>> quern.Column("uint8", 80).stored_bytes, quern.Column("uint8", 80, encoding="bits").stored_bytes
(80, 10))";

inline constexpr const char* kReplayBufferDoc =
    R"(A ring buffer of rows that threads and processes add to and sample from concurrently, without locks.

Readers never see a partially written row. When the buffer is full, the oldest rows are overwritten.

>>> buffer = quern.ReplayBuffer({"planes": ("float32", (2, 8, 8)), "value": "float32"}, capacity=1000)
>>> buffer.add_batch(planes=np.zeros((4, 2, 8, 8), np.float32), value=np.arange(4, dtype=np.float32))
3
>>> batch = buffer.sample(2)
>>> batch["planes"].shape, batch["value"].shape
((2, 2, 8, 8), (2,)))";

inline constexpr const char* kReplayInitDoc =
    R"(Creates a buffer. columns: {name: dtype}, {name: (dtype, shape of one row)} or {name: Column}.

The buffer is in private memory by default; with shared="name", in shared memory that other processes can attach() to;
with file=path, in a file that outlives all processes. columns may be nested: {"obs": {"image": ...}} is the column
"obs.image". prioritised (or prioritized): rows have priorities, and sample() draws them in proportion to
priority ** alpha. terminal, truncated: names of the bool or uint8 columns that mark the last row of an episode, because
it ended or because it was cut off; with either, the buffer has episodes (see writer()). samples_per_insert, min_size and slack are
the rate limit: add() and sample() wait for each other so that each row is sampled samples_per_insert times on average,
within `slack` samples, and sampling waits until there are min_size rows. prefault: touch all memory now instead of
when rows are first added. seed: seed of sample(), 0 to 2**64 - 1. cast: the default of add() and add_batch().

>>> quern.ReplayBuffer({"board": ("uint8", (8, 8)), "value": "float32"}, capacity=100, prioritised=True)
<quern.ReplayBuffer: 0 of 100 rows, 2 columns, prioritised>)";

inline constexpr const char* kAttachDoc = R"(Attaches to a buffer that another process created with shared= or file=.

Waits up to `patience` seconds for it to appear. A ReplayBuffer that is passed to another process (multiprocessing,
pickle) attaches automatically.

>>> made = quern.ReplayBuffer({"value": "float32"}, capacity=10, file="rows.replay")
>>> same = quern.ReplayBuffer.attach(file="rows.replay")
>>> made.add(value=1.5), len(same)
(0, 1))";

inline constexpr const char* kRemoveDoc = R"(Removes shared memory or a file by name; returns whether it existed.

Processes that are attached can continue to use it; its memory is freed when the last of them detaches.

>>> quern.ReplayBuffer.remove(shared="no-such-buffer")
False)";

inline constexpr const char* kAddDoc = R"(Adds one row, given as keyword arguments or as a dict, and returns its id.

An array must have the column's dtype and shape, unless cast is True: it is then converted like a number. A number or a list is converted if the dtype can represent its values:
a float may be rounded, but 1e300 is rejected for float32, and 2.5 or 300 for uint8. priority: the highest so far by
default. timeout: maximum seconds to wait for the rate limit, if the buffer has one; then TimeoutError is raised.

In a buffer with episodes, use writer() instead.

>>> buffer.add(planes=np.zeros((2, 8, 8), np.float32), value=0.5)
4)";

inline constexpr const char* kAddBatchDoc =
    R"(Adds rows directly from arrays, one row per index of their first dimension; returns the id of the last.

Each array must have the column's dtype and shape and be C-contiguous: nothing is converted or copied twice, and
nothing is written if any argument is invalid. The GIL is released meanwhile. priorities: one per row; the highest so
far by default. timeout: maximum seconds to wait for the rate limit, if the buffer has one; then TimeoutError is raised.
cast: convert arrays of another dtype, lists and arrays that are not contiguous, if the dtype can represent the values.
In a buffer with episodes, the rows are consecutive rows of one actor: the first begins an episode.

>>> buffer.add_batch(planes=np.zeros((2, 2, 8, 8), np.float32), value=np.ones(2, np.float32))
5)";

inline constexpr const char* kGetDoc =
    R"(Returns the row with this id as {name: array}, or None if it has been overwritten or does not exist.

For a list or an integer array of ids, of any shape, returns a Sample with one row per id; its mask tells which of them
were in the buffer, and the others are zeros. Negative ids are an error. out: as in sample().

>>> buffer.get(0)["value"]
0.0
>>> buffer.get(10**9) is None
True
>>> rows = buffer.get([0, 10**9])
>>> rows["value"].shape, rows.mask.tolist()
((2,), [True, False]))";

inline constexpr const char* kUpdatePrioritiesDoc =
    R"(Sets the priorities of the rows with these ids, such as Sample.ids; returns how many of the rows still exist.

Ids must be non-negative integers; floats are rejected.

>>> prioritised.update_priorities([0, 1], [0.5, 2.0])
2)";

inline constexpr const char* kCapacityDoc = R"(Maximum number of rows.

>>> buffer.capacity
1000)";

inline constexpr const char* kTotalAddedDoc =
    R"(Number of rows ever added, by all processes; len() is the number of rows in the buffer.

>>> buffer.total_added >= len(buffer)
True)";

inline constexpr const char* kColumnsDoc = R"(The columns, by name.

>>> list(buffer.columns)
['planes', 'value'])";

inline constexpr const char* kPrioritisedDoc = R"(Whether rows have priorities.

>>> buffer.prioritised
False)";

inline constexpr const char* kPrioritizedDoc = R"(The same as `prioritised`.

>>> buffer.prioritized
False)";

inline constexpr const char* kTerminalDoc = R"(The column that marks terminal ends of episodes, or None.

>>> episodes.terminal
'done')";

inline constexpr const char* kTruncatedDoc = R"(The column that marks episodes that were cut off, or None.

>>> episodes.truncated is None
True)";

inline constexpr const char* kOpenOrCreateDoc =
    R"(Attaches to a buffer if it exists with these columns and options; creates it otherwise.

Any number of processes may call it at once: one creates the buffer, the others attach. An existing buffer with other
columns or options is an error.

>>> first = quern.ReplayBuffer.open_or_create({"value": "float32"}, capacity=10, file="opened.replay")
>>> second = quern.ReplayBuffer.open_or_create({"value": "float32"}, capacity=10, file="opened.replay")
>>> first.add(value=1.5), len(second)
(0, 1))";

inline constexpr const char* kClearDoc = R"(Removes all rows, for all processes at once.

No call that starts afterwards, in any process, returns one of them. Ids and total_added continue, and the rate limit
waits for min_size rows again.

>>> small = quern.ReplayBuffer({"value": "float32"}, capacity=10)
>>> small.add(value=1), small.clear(), len(small), small.add(value=2)
(0, None, 0, 1))";

inline constexpr const char* kStatsDoc = R"(Returns numbers about the buffer in use, as a dict.

size, capacity, fill; added and sampled: rows, by all processes, since the buffer was created; added_per_second and
sampled_per_second in the `seconds` since the last stats() of this object; oldest_age and mean_age: rows added since;
missing: ids among the newest that have no row; min_priority, mean_priority, max_priority; balance of the rate limit;
episodes; bytes; handles: objects that are open on it in all processes; age_seconds. None for what does not apply.

>>> buffer.stats()["capacity"]
1000)";

inline constexpr const char* kListDoc = R"(Describes all buffers of this user in shared memory, as a list of dicts.

>>> isinstance(quern.ReplayBuffer.list(), list)
True)";

inline constexpr const char* kInfoDoc = R"(Describes a buffer in shared memory or in a file, without attaching to it.

>>> made = quern.ReplayBuffer({"value": "float32"}, capacity=10, file="described.replay")
>>> quern.ReplayBuffer.info(file="described.replay")["capacity"]
10)";

inline constexpr const char* kSampleMaskDoc =
    R"(Of get(ids): which of the rows were in the buffer. None for rows from sample().

>>> buffer.get([0, 10**9]).mask.tolist()
[True, False])";

inline constexpr const char* kSampleNestedDoc =
    R"(The arrays as dicts of dicts: the column "obs.image" is nested["obs"]["image"].

>>> nested = quern.ReplayBuffer({"obs": {"image": ("uint8", (4, 4)), "speed": "float32"}}, capacity=10)
>>> nested.add(obs={"image": np.zeros((4, 4), np.uint8), "speed": 1.5})
0
>>> batch = nested.sample(3)
>>> batch.nested["obs"]["image"].shape, batch["obs"]["speed"].shape, batch["obs.speed"].shape
((3, 4, 4), (3,), (3,)))";

inline constexpr const char* kRowBytesDoc = R"(Size of a row in bytes.

>>> buffer.row_bytes == 2 * 8 * 8 * 4 + 4
True)";

inline constexpr const char* kSeedDoc =
    R"(The seed of sample(). The rows drawn depend on the seed, on `draws` and on the rows in the buffer.

By default the seed is random and different in each process. A seed given by the caller is the same in a forked
process, which then draws the same rows as its parent.

>>> quern.ReplayBuffer({"value": "float32"}, capacity=10, seed=7).seed
7)";

inline constexpr const char* kDrawsDoc =
    R"(Number of calls of sample() that returned rows. Set it to an earlier value to repeat the draws since then.

>>> before = buffer.draws
>>> first = buffer.sample(3).ids
>>> buffer.draws = before
>>> bool((buffer.sample(3).ids == first).all())
True)";

inline constexpr const char* kSampleDoc = R"(Draws n rows by a rule and returns them as a Sample.

rule: "uniform" (with replacement), "without_replacement", "prioritised" (or "prioritized"), or "recent", where a row's
probability halves with every half_life rows of age; by default "prioritised" if the buffer is, otherwise "uniform". beta: the importance weights of "prioritised" are (rows * probability) ** -beta,
divided by the largest. out: a Sample to reuse, or a dict of arrays for the columns to read; no memory is then allocated
for rows. timeout: maximum seconds to wait for the rate limit, if the buffer has one; then TimeoutError is raised. The
GIL is released meanwhile.

>>> batch = buffer.sample(256)
>>> batch = buffer.sample(256, out=batch, rule="recent", half_life=100)
>>> values = np.empty(256, np.float32)
>>> sample = buffer.sample(256, out={"value": values}))";

inline constexpr const char* kSampleClassDoc = R"(Rows drawn by ReplayBuffer.sample(): arrays by column name.

>>> batch = buffer.sample(4)
>>> batch["value"].shape
(4,)
>>> sorted(dict(**batch))
['planes', 'value'])";

inline constexpr const char* kSampleKeysDoc = R"(The column names.

>>> list(buffer.sample(4).keys())
['planes', 'value'])";

inline constexpr const char* kSampleValuesDoc = R"(The arrays of the columns.

>>> [array.shape for array in buffer.sample(4).values()]
[(4, 2, 8, 8), (4,)])";

inline constexpr const char* kSampleItemsDoc = R"(The column names with their arrays.

>>> {name: array.shape for name, array in buffer.sample(4).items()}
{'planes': (4, 2, 8, 8), 'value': (4,)})";

inline constexpr const char* kSampleArraysDoc = R"(The arrays by column name, as a dict.

>>> buffer.sample(4).arrays["value"].dtype
dtype('float32'))";

inline constexpr const char* kSampleIdsDoc = R"(The id of each row: the number of rows added before it.

>>> buffer.sample(4).ids.dtype
dtype('uint64'))";

inline constexpr const char* kSampleAgesDoc = R"(The number of rows added after each row; 0 for the newest.

>>> bool((buffer.sample(4).ages < buffer.capacity).all())
True)";

inline constexpr const char* kSampleWeightsDoc = R"(The importance weight of each row; 1 unless drawn by priority.

>>> buffer.sample(4).weights.tolist()
[1.0, 1.0, 1.0, 1.0])";

inline constexpr const char* kSaveDoc =
    R"(Saves the rows, in order and with their priorities, to a file that appears complete or not at all.

Rows may be added meanwhile. threads: every core by default.

>>> buffer.save("rows.snapshot").rows == len(buffer)
True)";

inline constexpr const char* kSaveInBackgroundDoc = R"(Like save(), but returns a Saving immediately.

Hold on to the Saving: deleting it waits until the file is saved.

>>> buffer.save_in_background("rows.snapshot").result().rows == len(buffer)
True)";

inline constexpr const char* kLoadSnapshotDoc =
    R"(Adds the rows of a snapshot, or the newest `capacity` of them if there are more.

The entire file is verified first. Its columns must match those of the buffer.

>>> saved = buffer.save("rows.snapshot")
>>> small = quern.ReplayBuffer(buffer.columns, capacity=2)
>>> small.load("rows.snapshot").rows, len(small)
(2, 2))";

inline constexpr const char* kExportNpzDoc =
    R"(Saves the rows as arrays for numpy.load(): the columns, __ids__ and, if rows have priorities, __priorities__.

>>> exported = buffer.export_npz("rows.npz")
>>> np.load("rows.npz")["value"].shape == (len(buffer),)
True)";

inline constexpr const char* kImportNpzDoc = R"(Adds the rows of a file saved by export_npz() or numpy.savez().

It must contain an array for each column. All arrays are checked before anything is written.

>>> np.savez("new.npz", planes=np.zeros((3, 2, 8, 8), np.float32), value=np.ones(3, np.float32))
>>> buffer.import_npz("new.npz").rows
3)";

inline constexpr const char* kFromSnapshotDoc =
    R"(Creates a buffer with the columns, the capacity (unless given) and the rows of a snapshot.

>>> saved = buffer.save("rows.snapshot")
>>> len(quern.ReplayBuffer.from_snapshot("rows.snapshot")) == len(buffer)
True)";

inline constexpr const char* kSnapshotInfoDoc = R"(Describes a snapshot, as a dict, without reading its rows.

>>> saved = buffer.save("rows.snapshot")
>>> quern.snapshot_info("rows.snapshot")["capacity"]
1000)";

inline constexpr const char* kSnapshotResultDoc = R"(The result of save() or load().

>>> buffer.save("rows.snapshot")
<quern.SnapshotResult: ... rows, ... bytes, 0 skipped>)";

inline constexpr const char* kResultRowsDoc = R"(Number of rows saved or loaded.

>>> buffer.save("rows.snapshot").rows == len(buffer)
True)";

inline constexpr const char* kResultBytesDoc = R"(Size of the file in bytes.

>>> buffer.save("rows.snapshot").bytes > 0
True)";

inline constexpr const char* kResultSkippedDoc =
    R"(Rows not saved because they were overwritten meanwhile, or not loaded because they did not fit.

>>> buffer.save("rows.snapshot").skipped
0)";

inline constexpr const char* kSavingDoc = R"(A snapshot that is being saved, returned by save_in_background().

>>> saving = buffer.save_in_background("rows.snapshot")
>>> saving.result().skipped
0)";

inline constexpr const char* kSavingDoneDoc = R"(Whether saving has finished or failed.

>>> saving = buffer.save_in_background("rows.snapshot")
>>> result = saving.result()
>>> saving.done()
True)";

inline constexpr const char* kSavingResultDoc =
    R"(Waits until saving has finished and returns a SnapshotResult, or raises the error that occurred.

>>> buffer.save_in_background("rows.snapshot").result().rows == len(buffer)
True)";

}  // namespace quern::python
