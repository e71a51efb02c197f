#include "diagnose/health.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace quern::train {
namespace {

constexpr const char* kTryDead =
    "nothing reaches it: check for weights that are all zero, or train with a lower rate from an earlier checkpoint";
constexpr const char* kTryVanishing = "raise optimizer.rate, or check for a part that is switched off";
constexpr const char* kTryExploding = "lower optimizer.rate, lengthen optimizer.warmup, or lower optimizer.clip";

// "h.0.ln_1.weight, h.0.ln_1.bias and 7 more".
std::string list_of(const std::vector<std::string_view>& names) {
  constexpr size_t kShown = 3;
  std::string text(names.front());
  for (size_t i = 1; i < std::min(names.size(), kShown); ++i) text += fmt::format(", {}", names[i]);
  if (names.size() > kShown) text += fmt::format(" and {} more", names.size() - kShown);
  return text;
}

}  // namespace

Health::Health(const nn::ParameterTable& layout) : layout_(&layout), tensors_(layout.all().size()) {
  for (size_t i = 0; i < tensors_.size(); ++i) tensors_[i].name = layout.all()[i].name;
  report_.tensors = tensors_;
}

const HealthReport* Health::report(const StepContext& step) {
  if (!step.measured) return nullptr;
  const nn::Gradient& gradient = step.gradient;
  for (size_t i = 0; i < tensors_.size(); ++i) {
    const nn::Parameter& info = layout_->all()[i];
    kernels::TensorStats sum;
    Change change;
    for (size_t s = info.first_segment; s < info.first_segment + info.segments; ++s) {
      const kernels::TensorStats& stats = gradient.stats(s);
      sum.sum += stats.sum;
      sum.squares += stats.squares;
      sum.zeros += stats.zeros;
      if (!(stats.largest <= sum.largest) && !std::isnan(sum.largest)) sum.largest = stats.largest;
      if (step.changes.empty()) continue;
      change.update += step.changes[s].update;
      change.weights += step.changes[s].weights;
    }
    const auto size = static_cast<double>(info.size);
    tensors_[i].norm = std::sqrt(sum.squares);
    tensors_[i].mean = sum.sum / size;
    tensors_[i].largest = static_cast<double>(sum.largest);
    tensors_[i].zeros = static_cast<double>(sum.zeros) / size;
    tensors_[i].update_ratio = change.weights > 0 ? std::sqrt(change.update / change.weights) : 0;
  }
  report_.step = step.before.step + 1;
  report_.norm = std::sqrt(gradient.squared_norm());
  return &report_;
}

HealthWarnings::Verdict HealthWarnings::judge(const TensorHealth& tensor) {
  if (std::isnan(tensor.largest)) return Verdict::kNan;
  if (std::isinf(tensor.largest)) return Verdict::kInfinite;
  if (tensor.largest == 0) return Verdict::kDead;
  return tensor.norm < kVanishing ? Verdict::kVanishing : Verdict::kFine;
}

std::vector<std::string> HealthWarnings::of(const HealthReport& report) {
  known_.resize(report.tensors.size(), Verdict::kFine);
  std::vector<std::string_view> changed[5];
  for (size_t i = 0; i < report.tensors.size(); ++i) {
    const Verdict verdict = judge(report.tensors[i]);
    if (verdict != known_[i]) changed[static_cast<size_t>(verdict)].push_back(report.tensors[i].name);
    known_[i] = verdict;
  }
  std::vector<std::string> warnings;
  const auto tell = [&](Verdict verdict, std::string_view what) {
    const auto& names = changed[static_cast<size_t>(verdict)];
    if (!names.empty()) warnings.push_back(fmt::format("step {}: {}: {}", report.step, list_of(names), what));
  };
  tell(Verdict::kNan, "the gradient contains NaN");
  tell(Verdict::kInfinite, "the gradient is infinite");
  tell(Verdict::kDead, fmt::format("the gradient is all zero (a dead layer); {}", kTryDead));
  tell(Verdict::kVanishing,
       fmt::format("the gradient's norm is below {:.0e} (vanishing); {}", kVanishing, kTryVanishing));
  const bool exploding = std::isfinite(report.norm) && report.norm > kExploding;
  if (exploding && !exploding_) {
    warnings.push_back(fmt::format("step {}: the gradient's norm is {:.4g}, above {:.0f} (exploding); {}", report.step,
                                   report.norm, kExploding, kTryExploding));
  }
  exploding_ = exploding;
  const bool vanishing = report.norm < kVanishing;
  if (vanishing && !vanishing_) {
    warnings.push_back(fmt::format("step {}: the whole gradient's norm is {:.2g}, below {:.0e} (vanishing); {}",
                                   report.step, report.norm, kVanishing, kTryVanishing));
  }
  vanishing_ = vanishing;
  return warnings;
}

}  // namespace quern::train
