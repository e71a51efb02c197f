#include "dist/communicator.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <vector>

#include "core/cache_line.h"

namespace quern::dist {

// On an idle core a message takes some microseconds.
void Backoff::pause() {
  constexpr uint32_t kSpins = 50, kYields = 100;
  ++tries_;
  if (tries_ < kSpins) {
    spin_pause();
  } else if (tries_ < kYields) {
    std::this_thread::yield();
  } else {
    sleep();
  }
}

// To sleep and to try again takes about 20 us of a core, so at most 4 % of it.
void Backoff::sleep() {
  constexpr uint32_t kShortest = 20, kDoublings = 5;
  std::this_thread::sleep_for(std::chrono::microseconds(kShortest << std::min(sleeps_++, kDoublings)));
}

void wait(Communicator& ranks, Communicator::Request request) {
  for (Backoff backoff; !ranks.done(request);) backoff.pause();
}

void all_gather(Communicator& ranks, uint32_t tag, std::span<std::byte> all,
                const std::function<Range(size_t rank)>& part) {
  const Range mine = part(ranks.rank());
  std::vector<Communicator::Request> requests;
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    const Range theirs = part(rank);
    if (rank == ranks.rank()) continue;
    if (theirs.size() > 0) requests.push_back(ranks.receive(rank, tag, all.subspan(theirs.begin, theirs.size())));
    if (mine.size() > 0) requests.push_back(ranks.send(rank, tag, all.subspan(mine.begin, mine.size())));
  }
  for (const Communicator::Request request : requests) wait(ranks, request);
}

}  // namespace quern::dist
