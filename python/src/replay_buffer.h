// The C++ side of quern.ReplayBuffer.
#pragma once

#include <memory>

#include "module.h"
#include "replay/buffer.h"
#include "replay/shared_sampler.h"
#include "replay_arrays.h"

namespace quern::python {

struct PyReplay {
  PyReplay(replay::ReplayBuffer its_buffer, replay::Storage its_place, const replay::Seed& seed)
      : buffer(std::move(its_buffer)), storage(std::move(its_place)), types(buffer.schema()), sampler(buffer, seed) {}

  replay::ReplayBuffer buffer;
  replay::Storage storage;
  ColumnTypes types;
  replay::SharedSampler sampler;
};

using PyReplayClass = py::class_<PyReplay, std::shared_ptr<PyReplay>>;

// The storage for the arguments of the constructor, attach() and remove().
replay::Storage storage_from(const py::object& shared, const py::object& file);

// A random seed for None.
replay::Seed seed_from(const py::object& seed);

// A new buffer with this schema and these options.
std::shared_ptr<PyReplay> make_replay(replay::Schema schema, const replay::BufferOptions& options,
                                      const replay::Storage& storage, const replay::Seed& seed);

void bind_sampling(py::module_& module, PyReplayClass& buffer);   // sample(), Sample
void bind_snapshots(py::module_& module, PyReplayClass& buffer);  // save(), load(), ..., Saving, SnapshotResult

}  // namespace quern::python
