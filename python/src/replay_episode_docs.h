// Docstrings of episodes in replay buffers. tests/python/package_test.py runs the examples.
#pragma once

namespace quern::python {

inline constexpr const char* kWriterDoc = R"(Returns a ReplayWriter, for one actor of a buffer with episodes.

streams: of environments that step together, whose rows are added as batches of one row for each.

>>> episodes.writer()
<quern.ReplayWriter of 1 stream>)";

inline constexpr const char* kReplayWriterDoc =
    R"(Adds the rows of one actor: each row continues the episode of the one before, until a row that ends it.

Each actor, in whatever thread or process, has its own writer.

>>> writer = episodes.writer()
>>> writer.add(obs=[0.5, 1.0], reward=1.0, done=False) >= 0
True)";

inline constexpr const char* kWriterAddDoc = R"(Like ReplayBuffer.add(), as the next row of the episode.

>>> episodes.writer().add(obs=[0.5, 1.0], reward=1.0, done=True) >= 0
True)";

inline constexpr const char* kWriterAddBatchDoc =
    R"(Like ReplayBuffer.add_batch(), as the next rows of the episode; with several streams, row r is of stream r % streams.

>>> writer = episodes.writer(streams=2)
>>> writer.add_batch(obs=np.zeros((2, 2), np.float32), reward=np.zeros(2, np.float32), done=np.zeros(2, bool)) > 0
True)";

inline constexpr const char* kWriterResetDoc =
    R"(The next row begins a new episode: call it when the environment was reset before its episode ended.

>>> episodes.writer().reset())";

inline constexpr const char* kWriterStreamsDoc = R"(Number of streams.

>>> episodes.writer(4).streams
4)";

inline constexpr const char* kSampleSequencesDoc =
    R"(Draws sequences of `length` consecutive rows of one episode, as arrays (batch, length, ...).

The first rows are drawn by the rule, as in sample(), among all rows with length - 1 further rows in their episode. With
pad=True every row can be drawn, and sequences that end early are filled up with zeros; see SequenceSample.mask.
columns: names of the columns to read, all by default. out: a SequenceSample to reuse, or a dict of arrays.

>>> sequences = episodes.sample_sequences(4, length=3)
>>> sequences["obs"].shape, sequences.ids.shape
((4, 3, 2), (4, 3)))";

inline constexpr const char* kSampleNStepDoc =
    R"(Draws rows with their n-step returns, for targets returns + discounts * value(next).

next: names of the columns of the observation, read from the row n steps later. last: for buffers whose rows also hold
the observation after the step, names of those columns, read from the last of the n rows. reward: the column of rewards.
At the end of an episode there are fewer steps, and discounts is 0 if the end was terminal. Rows whose episode is still
going on and has fewer than n further rows are not drawn. columns: names of the columns to read from the drawn row, all
by default. out: an NStepSample to reuse.

>>> steps = episodes.sample_n_step(4, n=2, gamma=0.9, next=["obs"])
>>> steps["obs"].shape, steps.next["obs"].shape, steps.returns.shape
((4, 2), (4, 2), (4,)))";

inline constexpr const char* kSequenceSampleDoc =
    R"(Sequences drawn by ReplayBuffer.sample_sequences(): arrays by column name.

>>> episodes.sample_sequences(4, length=2)
<quern.SequenceSample of 4 sequences of 2 rows>)";

inline constexpr const char* kSequenceMaskDoc =
    R"(Which rows are rows of the episode, and not filled up (batch, length).

>>> bool(episodes.sample_sequences(4, length=2).mask.all())
True)";

inline constexpr const char* kSequenceLengthsDoc = R"(Number of rows of each sequence that are not filled up.

>>> episodes.sample_sequences(3, length=2).lengths.tolist()
[2, 2, 2])";

inline constexpr const char* kNStepSampleDoc = R"(Rows drawn by ReplayBuffer.sample_n_step(): arrays by column name.

>>> episodes.sample_n_step(4, n=2, gamma=0.9, next=["obs"])
<quern.NStepSample of 4 rows>)";

inline constexpr const char* kNStepNextDoc = R"(The arrays of the `next` and `last` columns, by name.

>>> list(episodes.sample_n_step(4, n=2, gamma=0.9, next=["obs"]).next)
['obs'])";

inline constexpr const char* kNStepReturnsDoc = R"(The discounted sums of the rewards.

>>> episodes.sample_n_step(4, n=2, gamma=0.9, next=["obs"]).returns.dtype
dtype('float32'))";

inline constexpr const char* kNStepDiscountsDoc = R"(gamma to the power of `steps`; 0 if the episode ended.

>>> bool((episodes.sample_n_step(4, n=2, gamma=0.9, next=["obs"]).discounts < 1).all())
True)";

inline constexpr const char* kNStepStepsDoc = R"(Number of rewards in each sum, n or less.

>>> bool((episodes.sample_n_step(4, n=2, gamma=0.9, next=["obs"]).steps <= 2).all())
True)";

inline constexpr const char* kNStepNextIdsDoc = R"(The id of the row that `next` is of.

>>> episodes.sample_n_step(4, n=2, gamma=0.9, next=["obs"]).next_ids.shape
(4,))";

}  // namespace quern::python
