#include "replay/forks.h"

#include <pthread.h>

#include <system_error>

#include "core/error.h"

namespace quern::replay {

void watch_forks() {
  static const int code =
      pthread_atfork(nullptr, nullptr, [] { detail::forks.fetch_add(1, std::memory_order_relaxed); });
  if (code != 0) throw Error("[replay] cannot watch for fork(): {}", std::generic_category().message(code));
}

}  // namespace quern::replay
