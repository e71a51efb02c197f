// Waiting for a rate limit from Python: with the GIL released, and interruptible.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "arguments.h"
#include "core/error.h"
#include "module.h"
#include "numbers.h"
#include "replay/rate_limiter.h"

namespace quern::python {

// The seconds of a `timeout` argument; infinity for None. Error unless it is a number other than NaN.
inline double timeout_from(const py::object& timeout) {
  if (timeout.is_none()) return std::numeric_limits<double>::infinity();
  if (!is_real(timeout)) throw Error("[replay] timeout: expected seconds or None, found {}", shown(timeout));
  const double seconds = real_from(timeout, "[replay] timeout");
  if (std::isnan(seconds)) throw Error("[replay] timeout: expected seconds or None, found nan");
  return seconds;
}

// The result of call(wait), which waits for at most `seconds` with the GIL released and checks for Ctrl-C meanwhile.
// TimeoutError when the time is up.
template <typename Call>
auto waiting(double seconds, const Call& call) {
  try {
    const py::gil_scoped_release unlocked;
    return call(replay::Wait(std::max(seconds, 0.0), check_signals));
  } catch (const replay::TimedOut& late) {
    PyErr_SetString(PyExc_TimeoutError, late.what());
  }
  throw py::error_already_set();
}

}  // namespace quern::python
