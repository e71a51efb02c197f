// Docstrings of training. tests/python/package_test.py runs the examples.
#pragma once

namespace quern::python {

inline constexpr const char* kTrainDoc = R"(Trains a model and returns a TrainResult; `out` is the folder of the run.

data: a text file, a folder, .jsonl or token shards, or a list of them; None for generated stories. Settings, each
overriding those before it: `preset` ("tiny" by default; "minute" and "ten-minutes" give the best model in that time on
two cores), `config` (a TOML file, or a dict as returned by preset()), `set` ({"model.layers": 2}), `tokenizer` ("byte", "char", "bpe" or the path of a
tokenizer.json), `steps` and `threads`. The result is bit-identical to that of `quern train` with the same settings,
with any number of threads.

on_step is called with a Step after each step. If it returns something false other than None, or raises, or on Ctrl-C,
the run saves a checkpoint and stops. resume=True resumes it; the result is bit-identical to that of an uninterrupted
run. Settings that are given on resume, such as more steps, are in force from the next step on and recorded in the run's
history: runs with the same history have the same weights. The model's sizes, the tokenizer, the seed and the sampling
cannot change; data may have moved. A finished run that is resumed without a change returns its result and trains
nothing.

init_from starts a new run from the weights of another one, with its settings unless given: a run (its newest
checkpoint), "RUN@best" (the lowest validation loss), "RUN@STEP", or the folder of a checkpoint in a run.

progress: a line with the step, losses, tokens/s and the time left, on standard error. By default in a terminal and in a
notebook; True also elsewhere, False never.

>>> losses = []
>>> result = quern.train(out="runs/short", steps=3, set={"model.layers": 1, "data.stories_bytes": 20_000},
...                      on_step=lambda step: losses.append(step.loss))
>>> result.finished, len(losses)
(True, 3)
>>> text = quern.load(result.path).generate("Once"))";

inline constexpr const char* kStepClassDoc = R"(A completed step, passed to the on_step callback of train().

>>> def show(step):
...     print(f"{step.step}/{step.steps} loss {step.loss:.3f}")
>>> result = quern.train(out="runs/shown", steps=2, set={"model.layers": 1, "data.stories_bytes": 20_000}, on_step=show)
1/2 loss ...
2/2 loss ...)";

inline constexpr const char* kStepStepDoc = R"(Number of the step, counted from 1.

>>> step.step
7)";

inline constexpr const char* kStepStepsDoc = R"(Number of steps in the run.

>>> step.step / step.steps
1.0)";

inline constexpr const char* kStepLossDoc = R"(Mean loss over the step's tokens, in nats, before the update.

>>> step.loss > 0
True)";

inline constexpr const char* kStepValidationLossDoc =
    R"(Loss on held-out text after the step; None if it was not measured.

>>> step.validation_loss > 0
True)";

inline constexpr const char* kLearningRateDoc = R"(The learning rate of the step.

>>> step.learning_rate < 0.01
True)";

inline constexpr const char* kGradientNormDoc = R"(The global norm of the gradient, before clipping.

>>> step.gradient_norm > 0
True)";

inline constexpr const char* kSkippedDoc =
    R"(Whether the update was skipped because the gradient was not finite or the loss spiked.

>>> step.skipped
False)";

inline constexpr const char* kTokensDoc = R"(Number of tokens processed by the step.

>>> step.tokens == model.config["train"]["batch"] * model.context
True)";

inline constexpr const char* kSecondsDoc = R"(Duration of the step in seconds, excluding validation and saving.

>>> step.seconds > 0
True)";

inline constexpr const char* kTokensPerSDoc = R"(Throughput of the step in tokens per second.

>>> step.tokens_per_s == step.tokens / step.seconds
True)";

inline constexpr const char* kTrainResultDoc = R"(The result of train().

>>> result
<quern.TrainResult runs/last: finished after step 7, loss ..., validation loss ...>)";

inline constexpr const char* kResultPathDoc = R"(The folder of the run, for load().

>>> quern.load(result.path).step == result.step
True)";

inline constexpr const char* kResultStepDoc = R"(The last completed step.

>>> result.step
7)";

inline constexpr const char* kFinishedDoc = R"(Whether the run is complete; if not, resume=True continues it.

>>> result.finished
True)";

inline constexpr const char* kResultLossDoc = R"(Loss of the last step of the run; nan if it had none.

>>> result.loss > 0
True)";

inline constexpr const char* kResultValidationLossDoc =
    R"(Loss on held-out text after the last step; None if it was not measured.

>>> result.validation_loss > 0
True)";

inline constexpr const char* kResultWeightsHashDoc = R"(SHA-256 of the weights: equal for equal settings and data.

>>> result.weights_hash == quern.load(result.path).weights_hash
True)";

}  // namespace quern::python
