// The ranks that a process was started with, for example by mpirun or srun.
#pragma once

#include <memory>
#include <string>

#include "dist/communicator.h"

namespace quern::dist {

// Null if this process was started alone. The MPI library is loaded only if it is needed, by a module next to the
// program, so the program itself works without it. Error if there is no such module, or if the library does not see the
// ranks that the launcher says it has started. Destroying the result ends MPI: no process can connect twice. After
// abort() that ends the processes of all ranks, with exit code 2.
std::unique_ptr<Communicator> connect();

// The MPI that this program would use: "Open MPI v4.1.4, ..."; "none" with the reason if there is none.
std::string mpi_description();

}  // namespace quern::dist
