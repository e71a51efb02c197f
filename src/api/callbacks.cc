#include "api/callbacks.h"

#include <limits>

#include "checkpoint/checkpoint.h"
#include "evaluate/load.h"

namespace quern::api {
namespace {

std::string newest_hash(const std::filesystem::path& folder, train::Observer& observer) {
  const auto warn = [&](const std::string& text) { observer.on_warning(text); };
  const auto newest = train::newest_checkpoint(folder, warn, checkpoint::Parts::kWeights);
  return newest ? checkpoint::weights_hash(newest->model()) : "";
}

}  // namespace

void Callbacks::on_step(const train::StepReport& report) {
  step_ = {.step = report.step,
           .steps = step_.steps,
           .loss = report.loss,
           .validation_loss = {},
           .learning_rate = report.rate,
           .gradient_norm = report.gradient_norm,
           .skipped = report.skipped(),
           .tokens = report.tokens,
           .seconds = report.seconds};
}

TrainResult result_of(const train::RunResult& run, const std::filesystem::path& out,
                      const std::filesystem::path& folder, train::Observer& observer) {
  return {.path = out,
          .step = run.step,
          .finished = run.finished,
          .loss = run.loss.value_or(std::numeric_limits<double>::quiet_NaN()),
          .validation_loss = run.validation_loss,
          .weights_hash = newest_hash(folder, observer)};
}

}  // namespace quern::api
