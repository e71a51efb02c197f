#include "step_callback.h"

#include "arguments.h"

namespace quern::python {

// An exception must not pass through the run, which would then not be saved: it is kept until the run is over.
template <typename Call>
void StepCallback::call_python(const Call& call) {
  const py::gil_scoped_acquire lock;
  try {
    call();
  } catch (const py::error_already_set&) {
    if (!raised_) raised_ = std::current_exception();
    stop_.store(true, std::memory_order_relaxed);
  }
}

void StepCallback::raise_again() const {
  if (raised_) std::rethrow_exception(raised_);
}

// Nothing is there to be saved yet: an interrupt ends it at once.
void StepCallback::on_preparing(std::string_view, uint64_t, uint64_t) { check_signals(); }

void StepCallback::on_step(const train::StepReport& report) {
  step_.report = report;
  step_.validation_loss.reset();
}

void StepCallback::on_validation(uint64_t, double loss) { step_.validation_loss = loss; }

void StepCallback::on_step_end(uint64_t) {
  call_python([&] {
    if (PyErr_CheckSignals() != 0) throw py::error_already_set();
    if (!function_.is_none() && function_(step_).is(py::bool_(false))) stop_.store(true, std::memory_order_relaxed);
  });
}

void StepCallback::on_warning(const std::string& text) {
  call_python([&] { warn(text); });
}

}  // namespace quern::python
