// The functions of the module with MPI, which is loaded on demand.
#pragma once

#include <string>

#include "dist/communicator.h"

namespace quern::dist {

inline constexpr const char* kMpiModuleSymbol = "quern_mpi_module";
inline constexpr unsigned kMpiModuleVersion = 1;

// The module uses nothing of the program but inline functions, so it can be loaded by any of them.
struct MpiModule {
  unsigned version;
  Communicator* (*connect)();  // new; null if MPI does not allow calls from several threads
  std::string (*description)();
};

}  // namespace quern::dist
