#include "run/run_ranks.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <utility>

#include "core/error.h"
#include "core/text.h"
#include "dist/tags.h"

namespace quern::train {
namespace {

// The first line that differs, of each.
std::pair<std::string, std::string> first_difference(std::string_view a, std::string_view b) {
  size_t begin = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()) && a[i] == b[i]; ++i) {
    if (a[i] == '\n') begin = i + 1;
  }
  const auto line = [&](std::string_view text) {
    return std::string(text.substr(std::min(begin, text.size()), text.find('\n', begin) - begin));
  };
  return {line(a), line(b)};
}

}  // namespace

bool RunRanks::any(bool flag) const {
  if (ranks_ == nullptr) return flag;
  std::vector<std::byte> flags(ranks_->size());
  flags[ranks_->rank()] = std::byte{flag};
  dist::all_gather(*ranks_, dist::kFlagsTag, flags, [](size_t rank) { return Range{rank, rank + 1}; });
  return std::find(flags.begin(), flags.end(), std::byte{1}) != flags.end();
}

std::vector<std::string> RunRanks::gather(const std::string& text) const {
  std::vector<uint64_t> sizes(ranks_->size());
  sizes[ranks_->rank()] = text.size();
  dist::all_gather(*ranks_, dist::kSizesTag, std::as_writable_bytes(std::span(sizes)), [](size_t rank) {
    return Range{rank * sizeof(uint64_t), (rank + 1) * sizeof(uint64_t)};
  });
  std::vector<size_t> first(sizes.size() + 1, 0);
  std::partial_sum(sizes.begin(), sizes.end(), first.begin() + 1);
  std::string all(first.back(), '\0');
  std::copy(text.begin(), text.end(), all.begin() + static_cast<std::ptrdiff_t>(first[ranks_->rank()]));
  dist::all_gather(*ranks_, dist::kTextsTag, std::as_writable_bytes(std::span(all)), [&](size_t rank) {
    return Range{first[rank], first[rank + 1]};
  });
  std::vector<std::string> texts;
  for (size_t rank = 0; rank < sizes.size(); ++rank) texts.push_back(all.substr(first[rank], sizes[rank]));
  return texts;
}

std::string RunRanks::from_first(const std::string& text) const {
  return ranks_ == nullptr ? text : gather(writes() ? text : std::string()).front();
}

void RunRanks::check_same(std::string_view what, const std::string& text) const {
  if (ranks_ == nullptr) return;
  const std::vector<std::string> texts = gather(text);
  for (size_t rank = 1; rank < texts.size(); ++rank) {
    if (texts[rank] == texts[0]) continue;
    const auto [expected, found] = first_difference(texts[0], texts[rank]);
    throw AgreedError(Error("[dist] {}: expected the same on every rank, found {} on rank 0 and {} on rank {}", what,
                            in_quotes(expected), in_quotes(found), rank));
  }
}

void RunRanks::agree(const std::function<void()>& body) const {
  if (ranks_ == nullptr) return body();
  std::string error;
  try {
    body();
  } catch (const std::exception& failure) {
    error = failure.what();
  }
  const std::vector<std::string> errors = gather(error);
  for (size_t rank = 0; rank < errors.size(); ++rank) {
    if (errors[rank].empty()) continue;
    const bool all_alike = std::equal(errors.begin() + 1, errors.end(), errors.begin());
    throw AgreedError(all_alike || rank == 0 ? Error(errors[rank]) : Error("[dist] rank {}: {}", rank, errors[rank]));
  }
}

std::exception_ptr RunRanks::agreed(const std::exception_ptr& failure) const {
  if (ranks_ == nullptr || !any(failure != nullptr)) return failure;
  try {
    agree([&] {
      if (failure) std::rethrow_exception(failure);
    });
  } catch (...) {
    return std::current_exception();
  }
  return failure;
}

void RunRanks::abort() const noexcept {
  if (ranks_ != nullptr) ranks_->abort();
}

}  // namespace quern::train
