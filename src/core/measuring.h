// Helpers for measurements.
#pragma once

#include <cstddef>
#include <functional>
#include <thread>
#include <vector>

namespace quern {

// Prevents the compiler from eliminating the computation of `value`.
template <typename T>
void do_not_optimize(const T& value) {
  asm volatile("" : : "g"(&value) : "memory");
}

// Runs body(thread) on `threads` threads concurrently, including the caller's, and returns when all have finished.
inline void run_on_threads(size_t threads, const std::function<void(size_t)>& body) {
  std::vector<std::jthread> others;
  for (size_t t = 1; t < threads; ++t) others.emplace_back([&body, t] { body(t); });
  body(0);
}

}  // namespace quern
