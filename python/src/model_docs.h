// What help() says about a model. tests/python/package_test.py runs the examples.
#pragma once

namespace quern::python {

inline constexpr const char* kLoadDoc = R"(The model of the newest whole checkpoint of the run in this folder.

>>> model = quern.load("runs/first")
>>> model
<quern.Model runs/first: step ..., ... parameters, context ..., vocabulary ...>)";

inline constexpr const char* kModelDoc = R"(A trained model; load() makes it. Several threads may use it at once.

>>> model = quern.load("runs/first")
>>> text = "Once" + model.generate("Once", tokens=10))";

inline constexpr const char* kPathDoc = R"(The folder of the run.

>>> model.path
PosixPath('runs/first'))";

inline constexpr const char* kConfigDoc = R"(Every setting of the run, by tables.

>>> model.config["model"]["context"] == model.context
True)";

inline constexpr const char* kStepDoc = R"(How many steps it was trained for.

>>> model.step <= model.config["train"]["steps"]
True)";

inline constexpr const char* kParametersDoc = R"(How many numbers it consists of.

>>> model.parameters > model.vocabulary * model.config["model"]["width"]
True)";

inline constexpr const char* kContextDoc = R"(How many tokens it sees at most.

>>> tokens = model.encode("Once upon a time, in a house at the end of the road, there was a cat.")
>>> logits = model.logits(tokens[-model.context:]))";

inline constexpr const char* kVocabularyDoc = R"(How many rows the token table has: the last dimension of logits().

At least as many as the tokenizer has tokens. Where model.vocabulary asked for more, the rows after those are filler: no
text has such tokens, generate() never draws them, decode() refuses them.

>>> model.logits(model.encode("Once")).shape[-1] == model.vocabulary
True)";

inline constexpr const char* kWeightsHashDoc = R"(SHA-256 of the weights, as `quern info` prints it.

>>> model.weights_hash == quern.load(model.path).weights_hash
True)";

inline constexpr const char* kEncodeDoc = R"(The token ids of a text, or of bytes, as int32.

>>> model.decode(model.encode("Once"))
'Once')";

inline constexpr const char* kDecodeDoc = R"(The text of token ids. Bytes that are no character become U+FFFD.

>>> model.decode(model.encode("Once"))
'Once')";

inline constexpr const char* kLogitsDoc = R"(The logits of every position as float32.

(T, V) for T tokens, (B, T, V) for (B, T) of them, V the vocabulary, filler rows included. Position t tells what follows tokens 0 ... t. T is
at most `context`. `threads`: every core by default; the bits do not depend on it.

>>> tokens = model.encode("Once upon")
>>> model.logits(tokens).shape == (len(tokens), model.vocabulary)
True)";

inline constexpr const char* kLossDoc =
    R"(Mean loss, in nats, of predicting each token from those before it in its sequence.

One sequence or several of equal length, of 2 to `context` + 1 tokens. `threads` as for logits().

>>> model.loss(model.encode("Once upon a time")) < model.loss(model.encode("emit a nopu ecnO"))
True)";

inline constexpr const char* kEvaluateDoc =
    R"(What `quern eval` measures: on text files and folders, or on the text held out from training.

>>> sorted(model.evaluate())
['bits_per_byte', 'loss', 'perplexity', 'tokens'])";

inline constexpr const char* kGenerateDoc = R"(Continues `prompt` by up to `tokens` tokens and returns what was added.

temperature: below 1 more likely text, above 1 more surprising, 0 the likeliest token. top_k: only the k likeliest
tokens, 0 for all. top_p: only the likeliest tokens that make up this share. The same prompt and seed give the same
text, with any number of threads: what `quern generate` prints after the prompt. Without a prompt the text starts with a
new line. It ends where the model ends the document; with ignore_end=True it has "<|endoftext|>" there and continues.

>>> model.generate("Once", tokens=20, seed=7) == model.generate("Once", tokens=20, seed=7)
True)";

inline constexpr const char* kStreamDoc = R"(The pieces of what generate() returns, each as soon as it is known.

>>> "".join(model.stream("Once", tokens=20)) == model.generate("Once", tokens=20)
True)";

inline constexpr const char* kTextStreamDoc = R"(The iterator that Model.stream() returns.

>>> pieces = model.stream("Once", tokens=20)
>>> next(pieces) + "".join(pieces) == model.generate("Once", tokens=20)
True)";

}  // namespace quern::python
