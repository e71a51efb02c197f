// The C++ side of quern.ReplayBuffer.
#pragma once

#include <memory>

#include "module.h"
#include "replay/buffer.h"
#include "replay/shared_sampler.h"
#include "replay/stats.h"
#include "replay_arrays.h"

namespace quern::python {

struct PyReplay {
  PyReplay(replay::ReplayBuffer its_buffer, replay::Storage its_place, const replay::Seed& seed)
      : buffer(std::move(its_buffer)),
        storage(std::move(its_place)),
        types(buffer.schema()),
        sampler(buffer, seed),
        meter(buffer) {}

  replay::ReplayBuffer buffer;
  replay::Storage storage;
  ColumnTypes types;
  replay::SharedSampler sampler;
  replay::StatsMeter meter;
  bool cast = false;  // the default of add() and add_batch()
};

using PyReplayClass = py::class_<PyReplay, std::shared_ptr<PyReplay>>;

// The storage for the arguments of the constructor, attach() and remove().
replay::Storage storage_from(const py::object& shared, const py::object& file);

// A random seed for None.
replay::Seed seed_from(const py::object& seed);

// The arguments that all ways of sampling share.
struct DrawArguments {
  py::object rule, half_life, beta, timeout;
};
replay::SampleRequest request_from(const PyReplay& self, const py::object& n, const DrawArguments& arguments,
                                   std::string_view where);

void bind_adding(py::module_& module, PyReplayClass& buffer);     // add(), add_batch(), writer(), ReplayWriter
void bind_sampling(py::module_& module, PyReplayClass& buffer);   // sample(), get(), Sample
void bind_episodes(py::module_& module, PyReplayClass& buffer);   // sample_sequences(), sample_n_step()
void bind_info(PyReplayClass& buffer);                            // stats(), list(), info()
void bind_snapshots(py::module_& module, PyReplayClass& buffer);  // save(), load(), ..., Saving, SnapshotResult

}  // namespace quern::python
