#include "dist/connect.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "core/error.h"
#include "dist/mpi/module.h"

namespace quern::dist {
namespace {

namespace fs = std::filesystem;

constexpr const char* kModule = "quern-mpi.so";

// The number of ranks by the launcher's environment; 1 if there is no launcher. Open MPI, then the process managers of
// MPICH and SLURM. SLURM sets the last one for every task of srun, with or without MPI.
size_t launched_ranks() {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"}) {
    if (const char* value = std::getenv(name)) return static_cast<size_t>(std::max(1L, std::atol(value)));
  }
  return 1;
}

// Next to the program, or where it is installed.
fs::path module_path() {
  std::error_code ignored;
  const fs::path folder = fs::read_symlink("/proc/self/exe", ignored).parent_path();
  for (const fs::path& candidate : {folder / kModule, folder / ".." / "lib" / "quern" / kModule}) {
    if (fs::exists(candidate, ignored)) return candidate;
  }
  return {};
}

struct Module {
  const MpiModule* functions = nullptr;
  std::string problem;
};

// Stays loaded until the process ends. All symbols are visible, because Open MPI loads plugins that need its own.
Module load() {
  const fs::path path = module_path();
  if (path.empty()) return {nullptr, "this program was built without MPI; install libopenmpi-dev and build again"};
  void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) return {nullptr, ::dlerror()};
  const auto* functions = static_cast<const MpiModule*>(::dlsym(library, kMpiModuleSymbol));
  if (functions == nullptr || functions->version != kMpiModuleVersion) {
    return {nullptr, path.string() + " belongs to another version of this program"};
  }
  return {functions, ""};
}

}  // namespace

std::unique_ptr<Communicator> connect() {
  const size_t launched = launched_ranks();
  if (launched == 1) return nullptr;
  const Module module = load();
  if (module.functions == nullptr) throw Error("[dist] started as one of {} ranks, but {}", launched, module.problem);
  std::unique_ptr<Communicator> ranks(module.functions->connect());
  if (ranks == nullptr) {
    throw Error("[dist] MPI: expected support for calls from several threads (MPI_THREAD_SERIALIZED), found none");
  }
  if (ranks->size() != launched) {
    throw Error("[dist] started as one of {} ranks, but MPI found {}; with srun, try --mpi=pmix", launched,
                ranks->size());
  }
  return ranks;
}

std::string mpi_description() {
  const Module module = load();
  return module.functions != nullptr ? module.functions->description() : "none: " + module.problem;
}

}  // namespace quern::dist
