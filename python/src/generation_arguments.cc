#include "generation_arguments.h"

#include "core/error.h"
#include "numbers.h"

namespace quern::python {

Sampling sampling_from(const SamplingArguments& arguments) {
  return {.temperature = float_from(arguments.temperature, "[generate] temperature"),
          .top_k = signed_from(arguments.top_k, "[generate] top_k"),
          .top_p = float_from(arguments.top_p, "[generate] top_p"),
          .min_p = float_from(arguments.min_p, "[generate] min_p"),
          .seed = whole_from(arguments.seed, "[generate] seed"),
          .repeat_penalty = float_from(arguments.repeat_penalty, "[generate] repeat_penalty"),
          .repeat_window = whole_from(arguments.repeat_window, "[generate] repeat_window", 0, kMaxRepeatWindow)};
}

size_t token_limit_from(const py::object& tokens) {
  const int64_t count = signed_from(tokens, "[generate] tokens");
  if (count < 0) throw Error("[generate] tokens: expected 0 or more, found {}", count);
  return static_cast<size_t>(count);
}

}  // namespace quern::python
