// Exports a replay buffer as a .npz file for numpy.load, and imports those of numpy.savez.
#pragma once

#include <cstdint>
#include <filesystem>

#include "replay/buffer.h"
#include "replay/snapshot.h"

namespace quern::replay {

// A .npz file has an array for each column, (rows, ...shape) of its dtype, oldest row first; `__ids__` (uint64), the
// ids of the rows; and, for a prioritised buffer, `__priorities__` (float32). Encoded columns are stored decoded.

// Writes the rows of the window at the time of the call, like save_snapshot(). It first writes a snapshot next to the
// file and removes it afterwards, since the number of readable rows must be known before the arrays are written. The
// file is complete or absent; leftovers of a killed export are removed by the next one. Uses a few megabytes of memory,
// or a few rows if those are larger, regardless of the number of rows and the encodings. Error also when a column is
// named `__ids__` or `__priorities__`.
SnapshotResult export_npz(const ReplayBuffer& buffer, const std::filesystem::path& path,
                          const SnapshotOptions& options = {});

// The same from a snapshot, without a buffer.
SnapshotResult export_npz(const std::filesystem::path& snapshot, const std::filesystem::path& path);

// Adds the rows of a .npz file, stored (numpy.savez) or deflated (numpy.savez_compressed), after the existing rows: the
// newest capacity() of them if there are more. `__priorities__` (float32 or float64) is used in a prioritised buffer;
// without it, rows get the highest so far. `__ids__`, if present, must be one 64-bit integer per row, and is not used.
// Two passes: all arrays are read, and their checksums and whether the columns can hold their values are checked,
// before anything is written. Uses as little memory as export_npz().
// Error naming the array: missing, duplicate, not a column, another dtype or shape, different numbers of rows, Fortran
// order, damaged.
SnapshotResult import_npz(ReplayBuffer& buffer, const std::filesystem::path& path);

}  // namespace quern::replay
