// Waiting for the other side of a rate limit, as a Python program wants to wait: without its lock, and interruptible.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>

#include "arguments.h"
#include "core/clock.h"
#include "core/error.h"
#include "module.h"
#include "replay/rate_limiter.h"

namespace quern::python {

// Whether anybody may ever have to wait. Without a limit an empty buffer is an error and nothing to wait for.
inline bool limits(const replay::RateLimit& limit) { return limit.samples_per_insert > 0 || limit.minimum > 1; }

// Calls admit(seconds), which waits that long at most and says whether it got what it waits for, until it did or
// `timeout` seconds (None: for ever) are over. TimeoutError then, that says for what.
template <typename Admit>
void wait_for(const py::object& timeout, std::string_view what, const Admit& admit) {
  constexpr double kLook = 0.05;  // for Ctrl-C
  const double seconds = timeout.is_none() ? -1 : PyFloat_AsDouble(timeout.ptr());
  if (PyErr_Occurred() != nullptr) throw py::error_already_set();  // a TypeError: not a number
  if (std::isnan(seconds)) throw Error("[replay] timeout: expected seconds or None, found nan");
  const py::gil_scoped_release unlocked;
  const double end = seconds_now() + seconds;
  for (;;) {
    const double left = timeout.is_none() ? kLook : std::max(0.0, end - seconds_now());
    if (admit(std::min(left, kLook))) return;
    check_signals();
    if (!timeout.is_none() && seconds_now() >= end) break;
  }
  const py::gil_scoped_acquire locked;
  const std::string text = "[replay] waited too long for " + std::string(what) + " (the buffer's rate limit)";
  PyErr_SetString(PyExc_TimeoutError, text.c_str());
  throw py::error_already_set();
}

}  // namespace quern::python
