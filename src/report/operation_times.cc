#include "report/operation_times.h"

#include <algorithm>

#include "train/plan.h"

namespace quern::report {
namespace {

constexpr double kMinShare = 0.001;

double total_of(const std::vector<ProfileRow>& rows, std::string_view name) {
  const auto found = std::find_if(rows.begin(), rows.end(), [&](const ProfileRow& row) { return row.name == name; });
  return found == rows.end() ? 0 : found->total;
}

}  // namespace

void OperationTimes::start(const train::RunStart& start) {
  if (!start.set_profile || start.plan == nullptr) return;
  set_profile_ = start.set_profile;
  profile_ = std::make_unique<Profile>(ProfileOptions{.threads = start.plan->threads});
}

void OperationTimes::stop() {
  if (measuring_) set_profile_(nullptr);
  measuring_ = false;
}

std::vector<OperationShare> OperationTimes::after(const train::StepReport& report) {
  std::vector<OperationShare> shares;
  if (profile_ == nullptr) return shares;
  if (measuring_) {
    stop();
    const double whole = static_cast<double>(profile_->threads()) * report.seconds;
    for (const ProfileRow& row : profile_->rows()) {
      const double share = whole > 0 ? (row.total - total_of(before_, row.name)) / whole : 0;
      if (share >= kMinShare) shares.push_back({row.name, share});
    }
    std::sort(shares.begin(), shares.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  }
  if ((report.step + 1) % interval_ != kPlace) return shares;
  before_ = profile_->rows();
  set_profile_(profile_.get());
  measuring_ = true;
  return shares;
}

}  // namespace quern::report
