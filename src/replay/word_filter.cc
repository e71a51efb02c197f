#include "replay/word_filter.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <span>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "replay/word_filter.cc"
#include "hwy/foreach_target.h"
#include "replay/masks-inl.h"

HWY_BEFORE_NAMESPACE();
namespace quern::replay::HWY_NAMESPACE {
namespace {

// Appends the marked words of a group: with one copy if all are marked, otherwise one by one, which is fast if few are.
template <typename T>
HWY_INLINE std::byte* Append(const std::byte* p, uint64_t mask, std::byte* out) {
  if (mask == ~uint64_t{0}) {
    std::memcpy(out, p, kGroup * sizeof(T));
    return out + kGroup * sizeof(T);
  }
  for (; mask != 0; mask &= mask - 1, out += sizeof(T)) {
    std::memcpy(out, p + static_cast<size_t>(std::countr_zero(mask)) * sizeof(T), sizeof(T));
  }
  return out;
}

template <typename T>
HWY_INLINE size_t Filter(const WordFilter& f, const std::byte* raw, size_t words, std::byte* out) {
  const auto common = static_cast<T>(f.common), second = static_cast<T>(f.second);
  const size_t groups = (words + kGroup - 1) / kGroup;
  std::byte* rest = out + groups * 8 * (f.two ? 2 : 1);
  const auto one = [&](size_t g, const std::byte* p) HWY_ATTR {
    uint64_t mask = WhereNot<T>(p, common);
    std::memcpy(out + g * 8, &mask, 8);
    if (f.two) {
      if (mask != 0) mask &= WhereNot<T>(p, second);
      std::memcpy(out + (groups + g) * 8, &mask, 8);
    }
    rest = Append<T>(p, mask, rest);
  };
  size_t g = 0;
  for (; (g + 1) * kGroup <= words; ++g) one(g, raw + g * kGroup * sizeof(T));
  if (g < groups) {
    T last[kGroup];
    std::fill_n(last, kGroup, common);
    std::memcpy(last, raw + g * kGroup * sizeof(T), (words - g * kGroup) * sizeof(T));
    one(g, reinterpret_cast<const std::byte*>(last));
  }
  return static_cast<size_t>(rest - out);
}

// Restores kGroup words from their masks; the packed words start at `rest`, and there are enough of them.
template <typename T>
HWY_INLINE const std::byte* Expand(uint64_t mask, uint64_t neither, T common, T second, const std::byte* rest,
                                   std::byte* p) {
  if (neither == ~uint64_t{0}) {
    std::memcpy(p, rest, kGroup * sizeof(T));
    return rest + kGroup * sizeof(T);
  }
  Choose<T>(mask, second, common, p);
  for (; neither != 0; neither &= neither - 1, rest += sizeof(T)) {
    std::memcpy(p + static_cast<size_t>(std::countr_zero(neither)) * sizeof(T), rest, sizeof(T));
  }
  return rest;
}

template <typename T>
HWY_INLINE bool Unfilter(const WordFilter& f, const std::byte* in, size_t size, std::byte* raw, size_t words) {
  const auto common = static_cast<T>(f.common), second = static_cast<T>(f.second);
  const size_t groups = (words + kGroup - 1) / kGroup;
  const size_t masks = groups * 8 * (f.two ? 2 : 1);
  if (size < masks) return false;
  const std::byte* neithers = in + masks - groups * 8;  // without a second value, the first masks
  const std::byte* rest = in + masks;
  size_t left = (size - masks) / sizeof(T);
  if (size != masks + left * sizeof(T)) return false;
  for (size_t g = 0; g < groups; ++g) {
    uint64_t mask, neither;
    std::memcpy(&mask, in + g * 8, 8);
    std::memcpy(&neither, neithers + g * 8, 8);
    const auto here = static_cast<size_t>(std::popcount(neither));
    if (here > left || (neither & ~mask) != 0) return false;
    left -= here;
    std::byte* p = raw + g * kGroup * sizeof(T);
    const size_t real = std::min(kGroup, words - g * kGroup);
    if (real == kGroup) {
      rest = Expand<T>(mask, neither, common, second, rest, p);
      continue;
    }
    if (mask >> real != 0) return false;
    std::byte last[kGroup * sizeof(T)];
    Expand<T>(mask, neither, common, second, rest, last);
    std::memcpy(p, last, real * sizeof(T));
  }
  return left == 0;
}

}  // namespace

size_t FilterAny(const WordFilter& f, const std::byte* raw, size_t bytes, std::byte* out) {
  return WithWord(f.word, [&](auto w) HWY_ATTR { return Filter<decltype(w)>(f, raw, bytes / sizeof w, out); });
}

bool UnfilterAny(const WordFilter& f, const std::byte* in, size_t size, std::byte* raw, size_t bytes) {
  return WithWord(f.word, [&](auto w) HWY_ATTR { return Unfilter<decltype(w)>(f, in, size, raw, bytes / sizeof w); });
}

}  // namespace quern::replay::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace quern::replay {
namespace {

HWY_EXPORT(FilterAny);
HWY_EXPORT(UnfilterAny);

struct Counted {
  uint64_t value = 0;
  size_t count = 0;
};

// The sample consists of runs of words, so that few cache lines are fetched, spread evenly over the array.
constexpr size_t kRuns = 32;
constexpr size_t kRun = 16;
using Sample = std::array<uint64_t, kRuns * kRun>;

size_t take_sample(const std::byte* raw, size_t words, size_t word, Sample& sample) {
  const size_t runs = std::min(kRuns, (words + kRun - 1) / kRun);
  size_t taken = 0;
  for (size_t run = 0; run < runs; ++run) {
    const size_t first = words * run / runs;
    for (size_t i = first; i < std::min(words, first + kRun); ++i) {
      sample[taken] = 0;
      std::memcpy(&sample[taken++], raw + i * word, word);
    }
  }
  return taken;
}

// Every value that makes up more than a fifth is among the four that remain (Misra and Gries); rarer ones may be too.
std::array<Counted, 4> frequent(std::span<const uint64_t> sample) {
  std::array<Counted, 4> candidates;
  for (const uint64_t value : sample) {
    const auto same = std::find_if(candidates.begin(), candidates.end(),
                                   [&](const Counted& k) { return k.count > 0 && k.value == value; });
    const auto free = std::find_if(candidates.begin(), candidates.end(), [](const Counted& k) { return k.count == 0; });
    if (same != candidates.end()) {
      ++same->count;
    } else if (free != candidates.end()) {
      *free = {value, 1};
    } else {
      for (Counted& k : candidates) --k.count;
    }
  }
  for (Counted& k : candidates) {
    const bool seen = k.count > 0;
    k.count = seen ? static_cast<size_t>(std::count(sample.begin(), sample.end(), k.value)) : 0;
  }
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Counted& a, const Counted& b) { return a.count > b.count; });
  return candidates;
}

}  // namespace

FilterChoice choose_filter(const std::byte* raw, size_t bytes, size_t word) noexcept {
  Sample sample;
  const size_t taken = take_sample(raw, bytes / word, word, sample);
  if (taken == 0) return {};
  const std::array<Counted, 4> best = frequent({sample.data(), taken});
  FilterChoice choice;
  choice.filter = {.word = word, .common = best[0].value, .second = best[1].value};
  // The second masks cost one bit per word, less after LZ4; a word that they save has 8 * word bits.
  choice.filter.two = best[1].count * 8 * word > taken;
  if (!choice.filter.two) choice.filter.second = 0;
  const size_t covered = best[0].count + (choice.filter.two ? best[1].count : 0);
  choice.rest = static_cast<double>(taken - covered) / static_cast<double>(taken);
  return choice;
}

size_t filter_words(const WordFilter& filter, const std::byte* raw, size_t bytes, std::byte* out) noexcept {
  return HWY_DYNAMIC_DISPATCH(FilterAny)(filter, raw, bytes, out);
}

bool unfilter_words(const WordFilter& filter, const std::byte* in, size_t size, std::byte* raw, size_t bytes) noexcept {
  return HWY_DYNAMIC_DISPATCH(UnfilterAny)(filter, in, size, raw, bytes);
}

}  // namespace quern::replay
#endif  // HWY_ONCE
