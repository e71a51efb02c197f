#include "cli/selfplay_actor.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <span>
#include <string_view>

#include "core/error.h"
#include "core/text.h"
#include "core/whole_number.h"
#include "learn/actor_process.h"
#include "learn/actor_report.h"

namespace quern::cli {
namespace {

// The learner holds the other end of the standard input open for as long as it lives.
bool input_ended() {
  pollfd input{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
  return ::poll(&input, 1, 0) > 0;
}

}  // namespace

bool names_actor(int argc, char** argv) { return argc > 1 && std::string_view(argv[1]) == kActorCommand; }

int run_actor_program(int argc, char** argv) {
  const std::span words(argv, static_cast<size_t>(argc));
  if (words.size() != 6 || std::string_view(words[2]) != "--run" || std::string_view(words[4]) != "--launch") {
    throw Error("{}: expected --run DIR --launch N; `quern selfplay --processes` starts it", kActorCommand);
  }
  const std::optional<uint64_t> launch = parse_whole_number(words[5]);
  if (!launch) throw Error("{}: --launch: expected a whole number, found {}", kActorCommand, in_quotes(words[5]));
  std::signal(SIGPIPE, SIG_IGN);  // a learner that was killed is noticed by the standard input
  learn::run_actor(words[3], *launch, input_ended, [](const learn::Totals& totals) {
    fmt::print("{}\n", learn::actor_report(totals));
    std::fflush(stdout);
  });
  return 0;
}

}  // namespace quern::cli
