// Waiting for the other side of a rate limit, as a Python program wants to wait: without its lock, and interruptible.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <string_view>

#include "arguments.h"
#include "core/clock.h"
#include "core/error.h"
#include "module.h"
#include "numbers.h"
#include "replay/rate_limiter.h"

namespace quern::python {

// Whether anybody may ever have to wait. Without a limit an empty buffer is an error and nothing to wait for.
inline bool limits(const replay::RateLimit& limit) { return limit.samples_per_insert > 0 || limit.minimum > 1; }

// The seconds of a `timeout` argument; infinitely many for None. TypeError when it is no number, Error for NaN.
inline double timeout_from(const py::object& timeout) {
  if (timeout.is_none()) return std::numeric_limits<double>::infinity();
  if (!is_real(timeout)) throw py::type_error("[replay] timeout: expected seconds or None, found " + shown(timeout));
  const double seconds = real_from(timeout, "[replay] timeout");
  if (std::isnan(seconds)) throw Error("[replay] timeout: expected seconds or None, found nan");
  return seconds;
}

// Calls admit(seconds), which waits that long at most and says whether it got what it waits for, until it did or
// `seconds` are over. TimeoutError then, that says for what.
template <typename Admit>
void wait_for(double seconds, std::string_view what, const Admit& admit) {
  constexpr double kLook = 0.05;  // for Ctrl-C
  const py::gil_scoped_release unlocked;
  const double end = seconds_now() + seconds;
  for (;;) {
    if (admit(std::clamp(end - seconds_now(), 0.0, kLook))) return;
    check_signals();
    if (seconds_now() >= end) break;
  }
  const py::gil_scoped_acquire locked;
  const std::string text = "[replay] waited too long for " + std::string(what) + " (the buffer's rate limit)";
  PyErr_SetString(PyExc_TimeoutError, text.c_str());
  throw py::error_already_set();
}

}  // namespace quern::python
