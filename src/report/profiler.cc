#include "report/profiler.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/byte_size.h"
#include "report/trace.h"
#include "train/plan.h"

namespace quern::report {

Profiler::Profiler(ProfilerOptions options) : options_(std::move(options)) {
  if (!options_.trace.empty()) check_trace_path(options_.trace);
}

void Profiler::on_start(const train::RunStart& start) {
  if (!start.set_profile || !wanted()) return;
  const size_t workers = start.plan->threads;
  profile_ = std::make_unique<Profile>(ProfileOptions{
      .threads = workers + 1, .events = options_.trace.empty() ? 0 : std::max<size_t>(4096, kTraceCalls / workers)});
  summary_ = {.profile = profile_.get(), .workers = workers};
  start.set_profile(profile_.get());
  here_.emplace(*profile_, workers);
}

void Profiler::on_step(const train::StepReport& report) {
  ++summary_.steps;
  summary_.seconds += report.seconds;
}

void Profiler::on_end(const train::RunEnd&) { here_.reset(); }

void Profiler::finish(double peak_gflops, double copy_gbs, Output& out) {
  if (profile_ == nullptr || summary_.steps == 0) return;
  summary_.peak_gflops = peak_gflops;
  summary_.copy_gbs = copy_gbs;
  if (options_.table) out.print("\n{}", profile_table(summary_));
  if (options_.trace.empty()) return;
  const TraceInfo info = write_trace(*profile_, summary_.workers, options_.trace);
  const std::string what = info.complete ? fmt::format("steps {} to {}", info.first_step, info.last_step)
                                         : fmt::format("the end of step {}", info.last_step);
  out.print("\ntrace: {}, {} calls, {} in {}; open it at https://ui.perfetto.dev\n", what, info.calls,
            rounded_bytes(info.bytes), options_.trace.string());
}

}  // namespace quern::report
