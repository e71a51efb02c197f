// A replay buffer as a .npz file, which numpy.load opens, and back from numpy.savez's.
#pragma once

#include <cstdint>
#include <filesystem>

#include "replay/buffer.h"
#include "replay/snapshot.h"

namespace quern::replay {

// A .npz has an array for each column, (rows, ...shape) of its dtype, oldest row first; `__ids__` (uint64), the ids
// that the rows had; and, of a prioritised buffer, `__priorities__` (float32). Encoded columns are there as values.

// Writes the rows of the window at the time of the call, as save_snapshot() does: in fact a snapshot is written beside
// the file first and removed afterwards, since the arrays must have as many rows as turn out to be readable. Complete
// or absent; what a killed export has left beside the file is removed by the next one. Takes a few megabytes of memory,
// or a few rows where these are larger, whatever the number of rows and the encodings. Error also when a column is
// called `__ids__` or `__priorities__`.
SnapshotResult export_npz(const ReplayBuffer& buffer, const std::filesystem::path& path,
                          const SnapshotOptions& options = {});

// The same from a snapshot, without a buffer.
SnapshotResult export_npz(const std::filesystem::path& snapshot, const std::filesystem::path& path);

// Adds the rows of a .npz, stored (numpy.savez) or deflated (numpy.savez_compressed), behind those that are there: the
// newest capacity() of them if there are more. `__priorities__` (float32 or float64) is used in a prioritised buffer;
// without it rows get the highest so far. `__ids__`, if there, must be one
// integer of 64 bits a row, and is not used. Two passes: all arrays are read and checked, with
// their checksums and whether the columns can hold their values, before anything is written. Takes as little memory as
// export_npz().
// Error naming the array: missing, there twice, one that is no column, another dtype or shape, other numbers of rows,
// Fortran's order, damaged.
SnapshotResult import_npz(ReplayBuffer& buffer, const std::filesystem::path& path);

}  // namespace quern::replay
