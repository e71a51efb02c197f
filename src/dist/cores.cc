#include "dist/cores.h"

#include <sched.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "core/host_name.h"
#include "dist/tags.h"

namespace quern::dist {
namespace {

struct Place {
  char host[64] = {};
  cpu_set_t cores;

  bool operator==(const Place& other) const {
    return std::memcmp(host, other.host, sizeof(host)) == 0 && CPU_EQUAL(&cores, &other.cores) != 0;
  }
};

// The cores that the system allows: asking for all of them undoes what a launcher has chosen.
Place place() {
  Place here;
  const std::string host = host_name();
  std::copy_n(host.data(), std::min(host.size(), sizeof(here.host)), here.host);
  CPU_ZERO(&here.cores);
  for (size_t core = 0; core < CPU_SETSIZE; ++core) CPU_SET(core, &here.cores);
  if (::sched_setaffinity(0, sizeof(here.cores), &here.cores) != 0 ||
      ::sched_getaffinity(0, sizeof(here.cores), &here.cores) != 0) {
    CPU_ZERO(&here.cores);
  }
  return here;
}

}  // namespace

void claim_cores(Communicator& ranks) {
  std::vector<Place> places(ranks.size());
  const Place here = places[ranks.rank()] = place();
  all_gather(ranks, kCoresTag, std::as_writable_bytes(std::span(places)), [](size_t rank) {
    return Range{rank * sizeof(Place), (rank + 1) * sizeof(Place)};
  });
  const auto own = places.begin() + static_cast<std::ptrdiff_t>(ranks.rank());
  const auto before = static_cast<size_t>(std::count(places.begin(), own, here));
  const auto sharing = static_cast<size_t>(std::count(places.begin(), places.end(), here));
  std::vector<size_t> cores;
  for (size_t core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &here.cores)) cores.push_back(core);
  }
  if (cores.empty()) return;
  const size_t begin = before * cores.size() / sharing;
  const size_t end = std::max(begin + 1, (before + 1) * cores.size() / sharing);
  cpu_set_t set;
  CPU_ZERO(&set);
  for (size_t i = begin; i < end; ++i) CPU_SET(cores[i], &set);
  static_cast<void>(::sched_setaffinity(0, sizeof(set), &set));  // if it fails, only speed is lost
}

}  // namespace quern::dist
