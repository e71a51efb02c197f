#include "benchmarks/lock_counter.h"

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)

std::optional<quern::bench::LockCounts> quern::bench::lock_counts() { return std::nullopt; }

#else

#include <dlfcn.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdarg>

namespace {

std::atomic<long> locks{0}, futexes{0};

template <typename Function>
Function next(const char* name) {
  return reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
}

}  // namespace

#define QUERN_COUNTED(name, Pointer)                        \
  int name(Pointer object) {                                \
    static const auto real = next<int (*)(Pointer)>(#name); \
    locks.fetch_add(1, std::memory_order_relaxed);          \
    return real(object);                                    \
  }

extern "C" {

QUERN_COUNTED(pthread_mutex_lock, pthread_mutex_t*)
QUERN_COUNTED(pthread_mutex_trylock, pthread_mutex_t*)
QUERN_COUNTED(pthread_rwlock_rdlock, pthread_rwlock_t*)
QUERN_COUNTED(pthread_rwlock_wrlock, pthread_rwlock_t*)
QUERN_COUNTED(pthread_cond_signal, pthread_cond_t*)
QUERN_COUNTED(pthread_cond_broadcast, pthread_cond_t*)
QUERN_COUNTED(pthread_barrier_wait, pthread_barrier_t*)

int pthread_cond_wait(pthread_cond_t* condition, pthread_mutex_t* mutex) {
  static const auto real = next<int (*)(pthread_cond_t*, pthread_mutex_t*)>("pthread_cond_wait");
  locks.fetch_add(1, std::memory_order_relaxed);
  return real(condition, mutex);
}

// std::atomic::wait and notify use this.
long syscall(long number, ...) {
  static const auto real = next<long (*)(long, ...)>("syscall");
  if (number == SYS_futex) futexes.fetch_add(1, std::memory_order_relaxed);
  va_list list;
  va_start(list, number);
  long a[6];
  for (long& argument : a) argument = va_arg(list, long);
  va_end(list);
  return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

}  // extern "C"

std::optional<quern::bench::LockCounts> quern::bench::lock_counts() {
  return LockCounts{.locks = locks.load(std::memory_order_relaxed), .futexes = futexes.load(std::memory_order_relaxed)};
}

#endif
