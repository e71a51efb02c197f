// Number of threads for functions of the public interface.
#pragma once

#include <algorithm>
#include <cstddef>

#include "core/cpu_info.h"
#include "core/error.h"
#include "core/team.h"

namespace quern::api {

// Every core for 0. Error for more than kMaxThreads.
inline size_t threads_from(size_t threads) {
  if (threads > kMaxThreads) {
    throw Error("[api] threads: expected 1 to {}, or 0 for every core, found {}", kMaxThreads, threads);
  }
  return threads > 0 ? threads : std::min(cpu_info().usable_cores, kMaxThreads);
}

}  // namespace quern::api
