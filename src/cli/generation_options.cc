#include "cli/generation_options.h"

namespace quern::cli {

void add_generation_options(Parser command, GenerateOptions& options, const std::string& tokens_help) {
  Sampling& sampling = options.sampling;
  command.add_number("--tokens", options.max_tokens, "N", tokens_help);
  command.add_number(
      "--temperature", sampling.temperature, "X",
      "Sampling temperature: lower is more predictable, higher more varied; 0 always picks the most likely token");
  command.add_number("--top-k", sampling.top_k, "K", "Sample from the K most likely tokens only; 0 for all");
  command.add_number("--top-p", sampling.top_p, "P", "Sample from the most likely tokens with this total probability");
  command.add_number("--min-p", sampling.min_p, "P",
                     "Sample from tokens at least P times as likely as the most likely one; 0 for all");
  command.add_number("--repeat-penalty", sampling.repeat_penalty, "X",
                     "Above 1: make tokens less likely that appeared recently, prompt included; 1 for none");
  command.add_number("--repeat-window", sampling.repeat_window, "N",
                     "Number of last tokens that --repeat-penalty looks at; 0 for all", {0, kMaxRepeatWindow});
  command.add_number("--seed", sampling.seed, "N", "Random seed");
}

}  // namespace quern::cli
