#include "replay/draw.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <thread>

#include "core/clock.h"
#include "core/error.h"

namespace quern::replay {
namespace {

constexpr uint16_t kNumberLayer = 0;  // the uses of Purpose::kReplay
constexpr uint16_t kOrderLayer = 1;

// Writers that wrap the ring during a draw cause misses; updating the window from time to time leads to hits again. A
// million consecutive misses have other reasons: hardly a row in the window is complete, or all are overwritten while
// being copied.
constexpr uint64_t kLookEvery = 256;
constexpr uint64_t kMaxTries = uint64_t{1} << 20;
constexpr double kPatience = 1;  // in seconds; a thread that writes a row for longer was stopped or killed

static_assert(Permutation::kRounds <= 8);  // the space between two calls in `sequence`

}  // namespace

void check_request(const ReplayBuffer& buffer, const SampleRequest& request) {
  buffer.expect_own_process("sample");
  if (request.rows == 0) throw Error("[replay] sample: expected 1 row or more, found 0");
  if (request.rule == Rule::kPrioritised && buffer.tree() == nullptr) {
    throw Error("[replay] sample: expected a prioritised buffer, found one that is not");
  }
  if (request.rule == Rule::kPrioritised && !(std::isfinite(request.beta) && request.beta >= 0)) {
    throw Error("[replay] sample: beta: expected a finite number, 0 or more, found {}", request.beta);
  }
  if (request.rule == Rule::kRecent && !(std::isfinite(request.half_life) && request.half_life > 0)) {
    throw Error("[replay] sample: half_life: expected a finite number above 0, found {}", request.half_life);
  }
}

// After a wait there are at least `minimum` rows.
void admit_samples(const ReplayBuffer& buffer, const SampleRequest& request, uint64_t rows, const Wait& wait) {
  const RateLimit& limit = buffer.options().limit;
  if (!limit.applies()) return;
  const uint64_t available = std::max(buffer.size(), limit.minimum);
  if (request.rule == Rule::kWithoutReplacement && request.rows > available) {
    throw Error("[replay] sample: without replacement: expected at least {} rows in the buffer, found {}", request.rows,
                available);
  }
  if (buffer.limiter().admit_samples(rows, wait)) return;
  throw TimedOut("[replay] waited too long for rows (the buffer's rate limit)");
}

Numbers::Numbers(uint64_t seed, uint64_t call) noexcept
    : stream_{.seed = seed,
              .purpose = Purpose::kReplay,
              .layer = kNumberLayer,
              .step = static_cast<uint32_t>(call),
              .sequence = static_cast<uint32_t>(call >> 32) << 3} {}

uint64_t Numbers::next() noexcept {
  if (used_ % 2 == 0) block_ = stream_.block(used_ / 2);
  const size_t half = 2 * (used_++ % 2);
  return static_cast<uint64_t>(block_[half + 1]) << 32 | block_[half];
}

// The high half of bits * bound: of the 2^64 products, floor or ceil(2^64 / bound) have each value. Rejecting the first
// 2^64 % bound low halves of each makes it the floor for all values (Lemire, "Fast random integer generation in an
// interval", 2019).
uint64_t Numbers::below(uint64_t bound) noexcept {
  for (;;) {
    const auto product = static_cast<unsigned __int128>(next()) * bound;
    const auto low = static_cast<uint64_t>(product);
    if (low >= bound || low >= (0 - bound) % bound) return static_cast<uint64_t>(product >> 64);
  }
}

double Numbers::fraction() noexcept { return static_cast<double>(next() >> 11) * 0x1p-53; }

Permutation Numbers::order(uint64_t size, uint16_t number) const {
  RandomStream stream = stream_;
  stream.layer = static_cast<uint16_t>(kOrderLayer + number);
  return {size, stream};
}

Drawer::Drawer(const ReplayBuffer& buffer, const SampleRequest& request, uint64_t seed, uint64_t call,
               std::string_view wanted)
    : buffer_(buffer), request_(request), numbers_(seed, call), wanted_(wanted) {
  const uint64_t rows = buffer.size();
  if (!find_rows()) throw Error("[replay] sample: expected at least one row in the buffer, found none");
  if (request.rule != Rule::kWithoutReplacement) return;
  if (request.rows > rows) {
    throw Error("[replay] sample: without replacement: expected at least {} rows in the buffer, found {}", request.rows,
                rows);
  }
  set_order();
}

void Drawer::look() {
  if (!order_) {
    if (!find_rows()) throw Error("[replay] sample: expected at least one row in the buffer, found none");
  } else if (buffer_.ring().window().begin >= newest_) {
    taken_ = size();  // all of them were overwritten
  }
}

// The newest ids are often still being written. They are excluded, so that kRecent starts at the newest complete row, a
// half-life shorter than the rows in flight works, and an empty buffer is detected. An entire window can be in flight:
// a ring of one row while it is overwritten, or a batch as large as the ring. Then the window is read again, until a
// million words have been checked: 20 ms for a large window. For one row, where other threads run between two checks,
// the time is the limit.
bool Drawer::find_rows(uint64_t first) {
  double deadline = 0;
  for (uint64_t checked = 0;;) {
    const Window window = buffer_.ring().window();
    if (window.end > kEndOfIds) {
      throw Error(
          "[replay] sample: expected row ids below {}, found {}: the counter of the buffer is damaged; create a new "
          "buffer",
          kEndOfIds, window.end);
    }
    const uint64_t begin = std::max(window.begin, first);
    uint64_t newest = window.end;
    while (newest > begin && !buffer_.ring().holds(newest - 1)) --newest;
    if (newest > begin) {
      begin_ = begin;
      newest_ = newest;
      end_ = window.end;
      return true;
    }
    checked += window.end - begin;
    const double now = seconds_now();
    if (deadline == 0) deadline = now + kPatience;
    if (window.end <= begin || buffer_.total_added() == 0 || checked >= kMaxTries || now > deadline) return false;
    std::this_thread::yield();
  }
}

void Drawer::set_order() {
  order_.emplace(numbers_.order(size(), orders_++));
  taken_ = 0;
  tried_ += size();
}

// Every row of the order was drawn, and some could not be read: writers have overwritten them since, and then there are
// as many new ones, or they are incomplete. The rows drawn so far stay, because new rows are none of them.
void Drawer::continue_with_new_rows() {
  if (!find_rows(newest_)) {
    throw Error("[replay] sample: without replacement: expected {} times {}, found fewer among {} rows", request_.rows,
                wanted_, tried_);
  }
  set_order();
}

Drawn Drawer::next() {
  switch (request_.rule) {
    case Rule::kUniform:
      return row(begin_ + numbers_.below(size()));
    case Rule::kRecent:
      return row(newest_ - 1 - recent_age());
    case Rule::kPrioritised:
      return by_priority();
    case Rule::kWithoutReplacement:
      break;
  }
  if (taken_ == size()) continue_with_new_rows();
  return row(begin_ + (*order_)(taken_++));
}

Drawn Drawer::again(uint64_t tries) {
  if (tries % kLookEvery == 0) look();
  if (tries < kMaxTries) return next();
  throw Error("[replay] sample: expected {}, found none in {} draws from a window of {}", wanted_, tries, size());
}

// With q = 2^(-1 / half_life) the ages 0 ... n - 1 have probabilities in proportion to q^age, so an age is at most a
// with probability (1 - q^(a + 1)) / (1 - q^n). For u in [0, 1) the inverse is floor(log(1 - u (1 - q^n)) / log(q)).
uint64_t Drawer::recent_age() noexcept {
  const double log_q = -std::numbers::ln2 / request_.half_life;
  const double all = -std::expm1(static_cast<double>(size()) * log_q);
  const double age = std::log1p(-numbers_.fraction() * all) / log_q;
  return std::min(static_cast<uint64_t>(age), size() - 1);  // rounding could make it n
}

// Independent draws, not stratified ones from each n-th part of the sum: strata would give rows in the order of their
// slots, so that a part of a call would have rows of one age, and an unreadable row could not be replaced.
Drawn Drawer::by_priority() {
  SumTree& tree = *buffer_.tree();
  const uint64_t total = tree.total();
  if (total == 0) throw Error("[replay] sample: expected a row with a priority above 0, found none");
  const SumTree::Found found = tree.find(numbers_.below(total));
  if (found.weight == 0) return {};
  const uint64_t id = buffer_.ring().id_in(found.slot);
  if (id == kNoRow) return {};
  if (id >= end_) end_ = buffer_.ring().window().end;           // added since the last check
  if (id >= end_ || id + buffer_.capacity() < end_) return {};  // damaged, or left in the slot by a killed process
  Drawn drawn = row(id);
  drawn.chance = static_cast<float>(static_cast<double>(found.weight) / static_cast<double>(total));
  return drawn;
}

}  // namespace quern::replay
