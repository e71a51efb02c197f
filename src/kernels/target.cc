#include "kernels/target.h"

#include <cstdint>
#include <cstdlib>

#include "core/error.h"
#include "hwy/highway.h"

namespace quern::kernels {
namespace {

constexpr int64_t kScalarTargets = HWY_SCALAR | HWY_EMU128;

std::string name_of(int64_t target) {
  if (target & kScalarTargets) return "scalar";
  std::string name = hwy::TargetName(target);
  for (char& c : name) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  return name;
}

bool has_fma(int64_t target) {
#if HWY_ARCH_X86
  return (target & (HWY_AVX2 | HWY_AVX3 | HWY_AVX3_DL)) != 0;
#else
  return (target & (HWY_NEON | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)) != 0;
#endif
}

// What the CPU supports, before any selection narrows it: read once, on first use.
int64_t supported() {
  static const int64_t targets = hwy::SupportedTargets() & HWY_TARGETS;
  return targets;
}

template <typename Visit>  // visit(bit); lower bits are better targets
void for_each_bit(int64_t targets, Visit visit) {
  for (; targets != 0; targets &= targets - 1) visit(targets & -targets);
}

}  // namespace

std::vector<Target> available_targets() {
  std::vector<Target> result;
  for_each_bit(supported(), [&](int64_t bit) { result.push_back({name_of(bit), has_fma(bit)}); });
  return result;
}

Target current_target() {
  supported();
  const int64_t targets = hwy::SupportedTargets() & HWY_TARGETS;
  const int64_t best = targets & -targets;
  return {name_of(best), has_fma(best)};
}

void select_target(std::string_view name) {
  std::string known;
  int64_t chosen = 0;
  for_each_bit(supported(), [&](int64_t bit) {
    known += (known.empty() ? "" : ", ") + name_of(bit);
    if (name_of(bit) == name) chosen = bit;
  });
  if (chosen == 0) throw Error("[target] expected one of {}, found '{}'", known, name);
  hwy::SetSupportedTargetsForTest(chosen);
  hwy::GetChosenTarget().Update(chosen);
}

void select_target_from_environment() {
  const char* name = std::getenv("QUERN_TARGET");
  if (name != nullptr && *name != '\0') select_target(name);
}

}  // namespace quern::kernels
