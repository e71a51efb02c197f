// A replay buffer as Python holds it.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <memory>

#include "module.h"
#include "replay/buffer.h"
#include "replay_arrays.h"

namespace quern::python {

// What sample() draws by. One that nobody has chosen is another one in a child process, which would else draw the rows
// that its parent draws.
class Seed {
 public:
  explicit Seed(const py::object& given);  // any where None is given
  uint64_t value();                        // with Python's lock

 private:
  uint64_t value_;
  bool chosen_;
  pid_t process_;
};

struct PyReplay {
  PyReplay(replay::ReplayBuffer its_buffer, replay::Place its_place, const Seed& its_seed)
      : buffer(std::move(its_buffer)), place(std::move(its_place)), types(buffer.schema()), seed(its_seed) {}

  replay::ReplayBuffer buffer;
  replay::Place place;
  ColumnTypes types;
  Seed seed;
  std::atomic<uint64_t> draws{0};  // calls of sample(): each takes a number, so that threads can share the buffer
};

using PyReplayClass = py::class_<PyReplay, std::shared_ptr<PyReplay>>;

// Where, from what the constructor, attach() and remove() are given.
replay::Place place_from(const py::object& shared, const py::object& file);

// A new one with the schema, and with all that `options` says.
std::shared_ptr<PyReplay> make_replay(replay::Schema schema, const replay::BufferOptions& options,
                                      const replay::Place& place, const Seed& seed);

void bind_sampling(py::module_& module, PyReplayClass& buffer);   // sample(), Sample
void bind_snapshots(py::module_& module, PyReplayClass& buffer);  // save(), load(), ..., Saving, SnapshotResult

}  // namespace quern::python
