// A network link with a rate and a latency between two network namespaces, for tests of runs on several hosts.
//
//   delayed_link NAMESPACE DEVICE NAMESPACE DEVICE MBIT_PER_S DELAY_US
//
// Makes a TUN device in each namespace (/proc/ID/ns/net) and passes packets between them, both ways at once: one after
// the other at the rate, each the delay later. Prints a line when the devices exist, and ends, which removes them, when
// its standard input does. Not all kernels have `tc qdisc ... netem`, which can do the same.
//
// Devices should have a large MTU: the work is done per packet. Packets pass with a header for checksums that are not
// computed, since they cannot be damaged on the way.
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::nanoseconds;

constexpr size_t kHeader = 10;  // struct virtio_net_hdr, whose own header is not one of C++
constexpr size_t kMaxPacket = 65536 + kHeader;
// How far ahead of the link packets are read. Whoever wakes up late by less loses no time on the link.
constexpr nanoseconds kAhead = std::chrono::milliseconds(2);

int check(int result, const char* what) {
  if (result < 0) throw std::system_error(errno, std::generic_category(), what);
  return result;
}

// A TUN device in a namespace. Exists as long as the process does.
int open_device(const std::string& network_namespace, const std::string& name) {
  const int own = check(::open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC), "own namespace");
  const int other = check(::open(network_namespace.c_str(), O_RDONLY | O_CLOEXEC), "namespace");
  check(::setns(other, CLONE_NEWNET), "setns");
  const int device = check(::open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC), "/dev/net/tun");
  ifreq request{};
  name.copy(request.ifr_name, IFNAMSIZ - 1);
  request.ifr_flags = IFF_TUN | IFF_NO_PI | IFF_VNET_HDR;
  check(::ioctl(device, TUNSETIFF, &request), "TUNSETIFF");
  check(::ioctl(device, TUNSETOFFLOAD, TUN_F_CSUM), "TUNSETOFFLOAD");
  check(::setns(own, CLONE_NEWNET), "setns");
  ::close(own);
  ::close(other);
  return device;
}

// One way of the link.
class Way {
 public:
  Way(int from, int to, double bytes_per_ns, nanoseconds delay)
      : from_(from), to_(to), bytes_per_ns_(bytes_per_ns), delay_(delay) {}

  int from() const { return from_; }
  bool can_read(Clock::time_point now) const { return free_ <= now + kAhead; }
  // When there is something to do even if no packet comes.
  std::optional<Clock::time_point> next(Clock::time_point now) const {
    std::optional<Clock::time_point> at;
    if (!packets_.empty()) at = packets_.front().due;
    if (!can_read(now)) at = std::min(at.value_or(Clock::time_point::max()), free_ - kAhead);
    return at;
  }

  void read(Clock::time_point now) {
    while (can_read(now)) {
      std::vector<char> data = buffer();
      const ssize_t size = ::read(from_, data.data(), data.size());
      if (size <= 0) {
        spare_.push_back(std::move(data));
        return;
      }
      // The header exists here only, and not on the link.
      const double bytes = static_cast<double>(size) - static_cast<double>(kHeader);
      free_ = std::max(free_, now) + nanoseconds(static_cast<int64_t>(bytes / bytes_per_ns_));
      packets_.push_back({free_ + delay_, static_cast<size_t>(size), std::move(data)});
    }
  }

  void write(Clock::time_point now) {
    for (; !packets_.empty() && packets_.front().due <= now; packets_.pop_front()) {
      Packet& packet = packets_.front();
      // A device that is not up yet refuses packets; a network loses them, too.
      static_cast<void>(!::write(to_, packet.data.data(), packet.size));
      spare_.push_back(std::move(packet.data));
    }
  }

 private:
  struct Packet {
    Clock::time_point due;
    size_t size;
    std::vector<char> data;
  };

  std::vector<char> buffer() {
    if (spare_.empty()) return std::vector<char>(kMaxPacket);
    std::vector<char> data = std::move(spare_.back());
    spare_.pop_back();
    return data;
  }

  int from_, to_;
  double bytes_per_ns_;
  nanoseconds delay_;
  Clock::time_point free_;  // when the link has sent what was read
  std::deque<Packet> packets_;
  std::vector<std::vector<char>> spare_;
};

void run(std::array<Way, 2>& ways) {
  for (;;) {
    Clock::time_point now = Clock::now(), next = Clock::time_point::max();
    std::array<pollfd, 3> files{pollfd{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0}};
    for (size_t i = 0; i < ways.size(); ++i) {
      // Of the other files, poll() ignores those with a negative number.
      files[i + 1] = {.fd = ways[i].can_read(now) ? ways[i].from() : -1, .events = POLLIN, .revents = 0};
      next = std::min(next, ways[i].next(now).value_or(next));
    }
    const bool idle = next == Clock::time_point::max();
    const nanoseconds wait = idle ? nanoseconds(0) : std::max(nanoseconds(0), nanoseconds(next - now));
    const timespec timeout{.tv_sec = wait.count() / 1'000'000'000, .tv_nsec = wait.count() % 1'000'000'000};
    check(::ppoll(files.data(), files.size(), idle ? nullptr : &timeout, nullptr), "ppoll");
    if (files[0].revents != 0) return;
    now = Clock::now();
    for (Way& way : ways) {
      way.read(now);
      way.write(now);
    }
  }
}

}  // namespace

int main(int count, char** arguments) try {
  if (count != 7) {
    std::fprintf(stderr, "expected: delayed_link NAMESPACE DEVICE NAMESPACE DEVICE MBIT_PER_S DELAY_US\n");
    return 2;
  }
  const int a = open_device(arguments[1], arguments[2]), b = open_device(arguments[3], arguments[4]);
  const double bytes_per_ns = std::atof(arguments[5]) / 8e3;
  const nanoseconds delay(static_cast<int64_t>(std::atof(arguments[6]) * 1e3));
  check(::prctl(PR_SET_TIMERSLACK, 1UL), "timer slack");  // nanoseconds; 50 us by default
  // A link does not wait for a core, so that a busy machine has the same one. If that is not allowed, it may be late.
  const sched_param priority{.sched_priority = 1};
  static_cast<void>(::sched_setscheduler(0, SCHED_FIFO, &priority));
  std::puts("ready");
  std::fflush(stdout);
  std::array<Way, 2> ways{Way(a, b, bytes_per_ns, delay), Way(b, a, bytes_per_ns, delay)};
  run(ways);
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "delayed_link: %s\n", error.what());
  return 1;
}
