#include "cli/run_argument.h"

#include "core/error.h"

namespace quern::cli {

void add_run(Parser command, RunArgument& run, const std::string& help) {
  command.add_word("RUN", run.word, help);
  command.add_text("--run", run.flag, "RUN", "The same");
}

std::string run_of(const RunArgument& run, const std::string& command) {
  if (!run.given()) throw Error("{0}: expected a run, as in `quern {0} runs/first`; run `quern {0} --help`", command);
  if (!run.flag.empty() && !run.word.empty()) {
    throw Error("{}: expected one run, found {} and --run {}", command, in_quotes(run.word), in_quotes(run.flag));
  }
  return run.flag.empty() ? run.word : run.flag;
}

std::string take_run(const std::string& flag, std::vector<std::string>& words, const std::string& command) {
  RunArgument run{.flag = flag, .word = {}};
  if (flag.empty() && !words.empty()) {
    run.word = words.front();
    words.erase(words.begin());
  }
  return run_of(run, command);
}

}  // namespace quern::cli
