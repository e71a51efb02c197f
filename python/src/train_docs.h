// What help() says about training. tests/python/package_test.py runs the examples.
#pragma once

namespace quern::python {

inline constexpr const char* kTrainDoc = R"(Trains a model and returns a TrainResult; `out` is the folder of the run.

data: a text file, a folder, .jsonl or token shards, or a list of them; None for generated stories. Settings, each over
those before: `preset` (tiny, small or gpt2; tiny by default), `config` (a TOML file, or a dict as preset() gives),
`set` ({"model.layers": 2}), `steps` and `threads`. The result is that of `quern train` with the same settings, to the
bit, with any number of threads.

on_step is called with a Step after each one. When it returns False or raises, or with Ctrl-C, the run saves and stops;
resume=True goes on with it, to the same result as if it had never stopped. Settings may be given again then, but not
changed, except train.threads, train.recompute, train.memory and those of diagnostics.

>>> losses = []
>>> result = quern.train(out="runs/short", steps=3, set={"model.layers": 1, "data.stories_bytes": 20_000},
...                      on_step=lambda step: losses.append(step.loss))
>>> result.finished, len(losses)
(True, 3)
>>> text = quern.load(result.path).generate("Once"))";

inline constexpr const char* kStepClassDoc = R"(What on_step of train() is given: a step that is done.

>>> def show(step):
...     print(f"{step.step}/{step.steps} loss {step.loss:.3f}")
>>> result = quern.train(out="runs/shown", steps=2, set={"model.layers": 1, "data.stories_bytes": 20_000}, on_step=show)
1/2 loss ...
2/2 loss ...)";

inline constexpr const char* kStepStepDoc = R"(Which step, counted from 1.

>>> step.step
7)";

inline constexpr const char* kStepStepsDoc = R"(How many steps the whole run has.

>>> step.step / step.steps
1.0)";

inline constexpr const char* kStepLossDoc = R"(Mean loss over the step's tokens in nats, before its update.

>>> step.loss > 0
True)";

inline constexpr const char* kStepValidationLossDoc =
    R"(Loss on held-out text after the step; None where it was not measured.

>>> step.validation_loss > 0
True)";

inline constexpr const char* kLearningRateDoc = R"(The learning rate of the step.

>>> step.learning_rate < 0.01
True)";

inline constexpr const char* kGradientNormDoc = R"(The norm of the whole gradient, before it was clipped.

>>> step.gradient_norm > 0
True)";

inline constexpr const char* kSkippedDoc =
    R"(Whether its update was left out, because the gradient was not finite or the loss spiked.

>>> step.skipped
False)";

inline constexpr const char* kTokensDoc = R"(How many tokens the step learned from.

>>> step.tokens == model.config["train"]["batch"] * model.context
True)";

inline constexpr const char* kSecondsDoc = R"(How long the step took; validation and saving are not counted.

>>> step.seconds > 0
True)";

inline constexpr const char* kTokensPerSDoc = R"(How fast the step was.

>>> step.tokens_per_s == step.tokens / step.seconds
True)";

inline constexpr const char* kTrainResultDoc = R"(How a call of train() ended.

>>> result
<quern.TrainResult runs/last: finished after step 7, loss ..., validation loss ...>)";

inline constexpr const char* kResultPathDoc = R"(The folder of the run, which load() takes.

>>> quern.load(result.path).step == result.step
True)";

inline constexpr const char* kResultStepDoc = R"(The last step that was done.

>>> result.step
7)";

inline constexpr const char* kFinishedDoc = R"(Whether that was the last step of the run; if not, resume=True goes on.

>>> result.finished
True)";

inline constexpr const char* kResultLossDoc = R"(Loss of the last step that this call did; 0 when it did none.

>>> result.loss > 0
True)";

inline constexpr const char* kResultValidationLossDoc =
    R"(Loss on held-out text after the last step; None when it was not measured there.

>>> result.validation_loss > 0
True)";

inline constexpr const char* kResultWeightsHashDoc = R"(SHA-256 of the weights: equal for equal settings and data.

>>> result.weights_hash == quern.load(result.path).weights_hash
True)";

}  // namespace quern::python
