// What help() says about replay buffers. tests/python/package_test.py runs the examples.
#pragma once

namespace quern::python {

inline constexpr const char* kColumnDoc = R"(What a column of a ReplayBuffer holds in each row.

>>> quern.Column("float32", (119, 8, 8), encoding="bits").stored_bytes
952)";

inline constexpr const char* kColumnInitDoc = R"(A column of this dtype and shape of one row.

encoding says how it lies in the buffer; arrays go in and come out with the dtype and shape. "raw": as it is. "bits": a
bit an element, for zeros and ones alone. "sparse": index and value of up to `max_nonzero` elements that are not zero.

>>> quern.Column("float32", (4672,), encoding="sparse", max_nonzero=256)
quern.Column('float32', (4672,), encoding='sparse', max_nonzero=256))";

inline constexpr const char* kColumnDtypeDoc = R"(The dtype of the arrays.

>>> buffer.columns["value"].dtype
dtype('float32'))";

inline constexpr const char* kColumnShapeDoc = R"(The shape of one row.

>>> buffer.columns["planes"].shape
(2, 8, 8))";

inline constexpr const char* kColumnEncodingDoc = R"(How it lies in the buffer: raw, bits or sparse.

>>> buffer.columns["planes"].encoding
'raw')";

inline constexpr const char* kColumnMaxNonzeroDoc =
    R"(Of a sparse column: how many elements of a row may differ from zero.

>>> quern.Column("float32", 100, encoding="sparse", max_nonzero=7).max_nonzero
7)";

inline constexpr const char* kColumnStoredBytesDoc = R"(Bytes of one row in the buffer.

>>> quern.Column("uint8", 80).stored_bytes, quern.Column("uint8", 80, encoding="bits").stored_bytes
(80, 10))";

inline constexpr const char* kReplayBufferDoc =
    R"(A ring of rows that threads and processes add to and sample from at once, without a lock.

Nobody ever sees a row that is not whole. When the ring is full the oldest rows are overwritten.

>>> buffer = quern.ReplayBuffer({"planes": ("float32", (2, 8, 8)), "value": "float32"}, capacity=1000)
>>> buffer.add_batch(planes=np.zeros((4, 2, 8, 8), np.float32), value=np.arange(4, dtype=np.float32))
3
>>> batch = buffer.sample(2)
>>> batch["planes"].shape, batch["value"].shape
((2, 2, 8, 8), (2,)))";

inline constexpr const char* kReplayInitDoc =
    R"(A new buffer. columns: {name: dtype}, {name: (dtype, shape of one row)} or {name: Column}.

In private memory, or with shared="name" in shared memory that other processes attach() to, or with file=path in a file
that also survives the end of every process. prioritised: rows have priorities, and sample(rule="prioritised") draws
them in proportion to priority ** alpha. samples_per_insert, min_size and slack: those who add and those who sample wait
for one another so that each row is sampled so many times on average, within `slack` samples, and nobody samples before
there are min_size rows. prefault: touch all of the memory now, and not when rows first come. seed: of sample(), 0 to
2**64 - 1.

>>> quern.ReplayBuffer({"board": ("uint8", (8, 8)), "value": "float32"}, capacity=100, prioritised=True)
<quern.ReplayBuffer: 0 of 100 rows, 2 columns, prioritised>)";

inline constexpr const char* kAttachDoc = R"(The buffer that another process made with shared= or file=.

Waits up to `patience` seconds for it to appear. A ReplayBuffer that is handed to another process (multiprocessing,
pickle) does the same by itself.

>>> made = quern.ReplayBuffer({"value": "float32"}, capacity=10, file="rows.replay")
>>> same = quern.ReplayBuffer.attach(file="rows.replay")
>>> made.add(value=1.5), len(same)
(0, 1))";

inline constexpr const char* kRemoveDoc = R"(Removes shared memory or a file by its name; whether there was one.

Those who are attached can go on using it; it is gone when the last one is.

>>> quern.ReplayBuffer.remove(shared="nobody-made-this")
False)";

inline constexpr const char* kAddDoc = R"(Adds one row, given by columns (or as a dict), and returns its id.

An array must have the column's dtype and shape; a number or a list is converted if its values stay what they are: a
float may be rounded, but 1e300 is no float32, and 2.5 or 300 no uint8. priority: the highest so far by default.
timeout: seconds to wait where the buffer has a rate limit; TimeoutError then.

>>> buffer.add(planes=np.zeros((2, 8, 8), np.float32), value=0.5)
4)";

inline constexpr const char* kAddBatchDoc =
    R"(Adds rows straight from arrays, one row for each index of their first dimension; returns the id of the last.

Each array must have the column's dtype and shape and be C-contiguous: nothing is converted or copied twice, and
nothing is written when something is wrong. Python's lock is free meanwhile. priorities: one a row; the highest so far
by default. timeout: seconds to wait where the buffer has a rate limit; TimeoutError then.

>>> buffer.add_batch(planes=np.zeros((2, 2, 8, 8), np.float32), value=np.ones(2, np.float32))
5)";

inline constexpr const char* kGetDoc = R"(The row with this id as {name: array}, or None when it is not there any more.

>>> buffer.get(0)["value"]
0.0
>>> buffer.get(10**9) is None
True)";

inline constexpr const char* kUpdatePrioritiesDoc =
    R"(New priorities for the rows with these ids, such as Sample.ids; how many of them were still there.

Ids are whole numbers: floats and negative ones are refused.

>>> prioritised.update_priorities([0, 1], [0.5, 2.0])
2)";

inline constexpr const char* kCapacityDoc = R"(How many rows it holds at most.

>>> buffer.capacity
1000)";

inline constexpr const char* kTotalAddedDoc =
    R"(How many rows were ever added, by everyone; len() is how many there are.

>>> buffer.total_added >= len(buffer)
True)";

inline constexpr const char* kColumnsDoc = R"(The columns by their names.

>>> list(buffer.columns)
['planes', 'value'])";

inline constexpr const char* kPrioritisedDoc = R"(Whether rows have priorities.

>>> buffer.prioritised
False)";

inline constexpr const char* kRowBytesDoc = R"(Bytes that a row takes.

>>> buffer.row_bytes == 2 * 8 * 8 * 4 + 4
True)";

inline constexpr const char* kSeedDoc = R"(What sample() draws follows from this, from `draws` and from the rows.

Unless it was given, another process has another one. A seed that was given stays the same in a forked process, which
then draws what its parent draws.

>>> quern.ReplayBuffer({"value": "float32"}, capacity=10, seed=7).seed
7)";

inline constexpr const char* kDrawsDoc =
    R"(Calls of sample() that gave rows, so far. Set it to what it was to draw the same again.

>>> before = buffer.draws
>>> first = buffer.sample(3).ids
>>> buffer.draws = before
>>> bool((buffer.sample(3).ids == first).all())
True)";

inline constexpr const char* kSampleDoc = R"(n rows, drawn by a rule, as a Sample.

rule: "uniform" (with replacement), "without_replacement", "prioritised", or "recent", where a row's chance halves with
every half_life rows of age. beta: importance weights of "prioritised" are (rows * chance) ** -beta over the largest.
out: a Sample to fill once more, or a dict of arrays for the columns that are wanted; nothing is allocated for rows
then. timeout: seconds to wait where the buffer has a rate limit; TimeoutError then. Python's lock is free meanwhile.

>>> batch = buffer.sample(256)
>>> batch = buffer.sample(256, out=batch, rule="recent", half_life=100)
>>> values = np.empty(256, np.float32)
>>> sample = buffer.sample(256, out={"value": values}))";

inline constexpr const char* kSampleClassDoc = R"(Rows that ReplayBuffer.sample() drew: arrays by column names.

>>> batch = buffer.sample(4)
>>> batch["value"].shape
(4,)
>>> sorted(dict(**batch))
['planes', 'value'])";

inline constexpr const char* kSampleKeysDoc = R"(The names of the columns.

>>> list(buffer.sample(4).keys())
['planes', 'value'])";

inline constexpr const char* kSampleValuesDoc = R"(The arrays of the columns.

>>> [array.shape for array in buffer.sample(4).values()]
[(4, 2, 8, 8), (4,)])";

inline constexpr const char* kSampleItemsDoc = R"(The names of the columns with their arrays.

>>> {name: array.shape for name, array in buffer.sample(4).items()}
{'planes': (4, 2, 8, 8), 'value': (4,)})";

inline constexpr const char* kSampleArraysDoc = R"(The arrays by column names, as a dict.

>>> buffer.sample(4).arrays["value"].dtype
dtype('float32'))";

inline constexpr const char* kSampleIdsDoc = R"(The id of each row: how many were added before it.

>>> buffer.sample(4).ids.dtype
dtype('uint64'))";

inline constexpr const char* kSampleAgesDoc = R"(How many rows were added after each; 0 for the newest.

>>> bool((buffer.sample(4).ages < buffer.capacity).all())
True)";

inline constexpr const char* kSampleWeightsDoc = R"(The importance weight of each row; 1 unless drawn by priority.

>>> buffer.sample(4).weights.tolist()
[1.0, 1.0, 1.0, 1.0])";

inline constexpr const char* kSaveDoc =
    R"(Saves the rows, in order and with their priorities, into a file that appears complete or not at all.

Others may add meanwhile. threads: every core by default.

>>> buffer.save("rows.snapshot").rows == len(buffer)
True)";

inline constexpr const char* kSaveInBackgroundDoc = R"(The same as save(), while the caller goes on; returns a Saving.

Keep it: dropping the Saving waits for the end.

>>> buffer.save_in_background("rows.snapshot").result().rows == len(buffer)
True)";

inline constexpr const char* kLoadSnapshotDoc =
    R"(Adds the rows of a snapshot: the newest `capacity` of them if there are more.

Every byte of the file is checked first. The columns must be those of the buffer.

>>> saved = buffer.save("rows.snapshot")
>>> small = quern.ReplayBuffer(buffer.columns, capacity=2)
>>> small.load("rows.snapshot").rows, len(small)
(2, 2))";

inline constexpr const char* kExportNpzDoc =
    R"(Saves the rows as arrays that numpy.load() opens: the columns, __ids__ and, if there are any, __priorities__.

>>> exported = buffer.export_npz("rows.npz")
>>> np.load("rows.npz")["value"].shape == (len(buffer),)
True)";

inline constexpr const char* kImportNpzDoc = R"(Adds the rows of what export_npz() or numpy.savez() saved.

There must be an array for each column, and all are checked before anything is written.

>>> np.savez("new.npz", planes=np.zeros((3, 2, 8, 8), np.float32), value=np.ones(3, np.float32))
>>> buffer.import_npz("new.npz").rows
3)";

inline constexpr const char* kFromSnapshotDoc =
    R"(A new buffer with the columns, the capacity (unless given) and the rows of a snapshot.

>>> saved = buffer.save("rows.snapshot")
>>> len(quern.ReplayBuffer.from_snapshot("rows.snapshot")) == len(buffer)
True)";

inline constexpr const char* kSnapshotInfoDoc = R"(What a snapshot holds, as a dict, without reading its rows.

>>> saved = buffer.save("rows.snapshot")
>>> quern.snapshot_info("rows.snapshot")["capacity"]
1000)";

inline constexpr const char* kSnapshotResultDoc = R"(What save() or load() did.

>>> buffer.save("rows.snapshot")
<quern.SnapshotResult: ... rows, ... bytes, 0 skipped>)";

inline constexpr const char* kResultRowsDoc = R"(Rows that were saved or loaded.

>>> buffer.save("rows.snapshot").rows == len(buffer)
True)";

inline constexpr const char* kResultBytesDoc = R"(Bytes of the file.

>>> buffer.save("rows.snapshot").bytes > 0
True)";

inline constexpr const char* kResultSkippedDoc =
    R"(Saving: rows overwritten before they were reached. Loading: rows that found no room.

>>> buffer.save("rows.snapshot").skipped
0)";

inline constexpr const char* kSavingDoc = R"(A snapshot that is being saved; save_in_background() returns it.

>>> saving = buffer.save_in_background("rows.snapshot")
>>> saving.result().skipped
0)";

inline constexpr const char* kSavingDoneDoc = R"(Whether it is saved, or failed.

>>> saving = buffer.save_in_background("rows.snapshot")
>>> result = saving.result()
>>> saving.done()
True)";

inline constexpr const char* kSavingResultDoc =
    R"(Waits for the end and returns a SnapshotResult, or raises what went wrong.

>>> buffer.save_in_background("rows.snapshot").result().rows == len(buffer)
True)";

}  // namespace quern::python
