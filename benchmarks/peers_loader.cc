#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <string_view>

#include "benchmarks/peers/peers.h"
#include "core/error.h"

namespace quern::bench {
namespace {

void set_if_unset(const char* name, const char* value) { setenv(name, value, 0); }

// OpenBLAS 0.3.21 treats a CPU newer than itself as an SSE3 one. Names of core types: see its interface/dynamic.c.
void configure_openblas(std::string_view isa) {
  if (isa == "avx2") {
    set_if_unset("OPENBLAS_CORETYPE", "Haswell");
  } else if (isa == "sse4" || isa == "scalar") {
    set_if_unset("OPENBLAS_CORETYPE", "Nehalem");
  } else if (isa.starts_with("avx3")) {
    set_if_unset("OPENBLAS_CORETYPE", "SkylakeX");
  }
}

void configure_onednn(std::string_view isa) {
  if (isa == "avx2") {
    set_if_unset("DNNL_MAX_CPU_ISA", "AVX2");
  } else if (isa == "sse4" || isa == "scalar") {
    set_if_unset("DNNL_MAX_CPU_ISA", "SSE41");
  }
}

const Peers* load_module(const std::filesystem::path& path) {
  std::error_code missing;
  if (!std::filesystem::exists(path, missing)) return nullptr;
  void* module = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);  // loaded for the lifetime of the program
  if (module == nullptr)
    throw Error("[peers] {}: {}; rebuild it, or remove it to run without peers", path.string(), dlerror());
  using Entry = const Peers* (*)();
  const auto entry = reinterpret_cast<Entry>(dlsym(module, "quern_peers"));
  if (entry == nullptr) throw Error("[peers] {}: expected a function quern_peers, found none", path.string());
  return entry();
}

}  // namespace

const Peers* load_peers(const char* isa_limit) {
  const std::string_view isa = isa_limit;
  configure_openblas(isa);
  configure_onednn(isa);
  setenv("OMP_NUM_THREADS", "1", 1);  // read by OpenBLAS and by oneDNN's OpenMP when they are loaded
  std::error_code missing;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", missing);
  return missing ? nullptr : load_module(program.parent_path() / "quern_peers.so");
}

}  // namespace quern::bench
