// A replay buffer as Python holds it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "module.h"
#include "replay/buffer.h"
#include "replay_arrays.h"

namespace quern::python {

struct PyReplay {
  PyReplay(replay::ReplayBuffer its_buffer, replay::Place its_place, uint64_t its_seed)
      : buffer(std::move(its_buffer)), place(std::move(its_place)), types(buffer.schema()), seed(its_seed) {}

  replay::ReplayBuffer buffer;
  replay::Place place;
  ColumnTypes types;
  uint64_t seed;
  std::atomic<uint64_t> draws{0};  // calls of sample(): each takes a number, so that threads can share the buffer
};

using PyReplayClass = py::class_<PyReplay, std::shared_ptr<PyReplay>>;

// Where, from what the constructor, attach() and remove() are given.
replay::Place place_from(const py::object& shared, const py::object& file);

// A new one with the schema, and with all that `options` says.
std::shared_ptr<PyReplay> make_replay(replay::Schema schema, const replay::BufferOptions& options,
                                      const replay::Place& place, uint64_t seed);

// Any where None is given.
uint64_t seed_from(const py::object& seed);

void bind_sampling(py::module_& module, PyReplayClass& buffer);   // sample(), Sample
void bind_snapshots(py::module_& module, PyReplayClass& buffer);  // save(), load(), ..., Saving, SnapshotResult

}  // namespace quern::python
