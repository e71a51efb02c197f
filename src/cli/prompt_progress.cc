#include "cli/prompt_progress.h"

#include <fmt/format.h>

namespace quern::cli {

void PromptProgress::start() {
  active_ = true;
  start_ = std::chrono::steady_clock::now();
}

void PromptProgress::update(size_t done, size_t total) {
  if (!active_ || std::chrono::steady_clock::now() - start_ < std::chrono::seconds(1)) return;
  line_.show(fmt::format("reading the prompt: {} of {} tokens", done, total));
}

void PromptProgress::stop() {
  active_ = false;
  line_.clear();
}

}  // namespace quern::cli
