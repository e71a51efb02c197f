#include "report/limiter.h"

#include <algorithm>

namespace quern::report {
namespace {

constexpr double kForgetting = 0.9;  // same as for the displayed speed

void follow(double& sum, double value) { sum = kForgetting * sum + value; }

}  // namespace

void Limiter::add(const train::StepReport& report) {
  const double threads = static_cast<double>(report.threads);
  follow(seconds_, report.seconds);
  const double waits = report.waits.tickets + report.waits.team + report.waits.queue;
  const double at_work = threads * report.seconds - waits;
  follow(waits_, (waits + std::max(0.0, at_work - report.cpu_seconds.value_or(at_work))) / threads);
  // The feeder may also wait while the workers still have work, which costs nothing.
  follow(data_, std::min(report.data_wait, report.waits.queue / threads));
  follow(tokens_, static_cast<double>(report.tokens));
}

std::string_view Limiter::name() const {
  if (seconds_ <= 0) return "";
  if (data_ >= kWait * seconds_) return "data";
  if (waits_ >= kWait * seconds_) return "waiting";
  if (peak_flops_ <= 0) return "";
  return tokens_ * flops_per_token_ >= kCompute * peak_flops_ * (seconds_ - waits_) ? "compute" : "memory";
}

}  // namespace quern::report
