// Docstrings of models. tests/python/package_test.py runs the examples.
#pragma once

namespace quern::python {

inline constexpr const char* kLoadDoc =
    R"(Loads a trained model: the newest complete checkpoint of a run, or another one.

run: the folder of the run, or of one of its checkpoints. checkpoint: "newest" (the default), "best" (the lowest
validation loss among those that were kept), the number of a step, or the path of a checkpoint.

>>> model = quern.load("runs/first")
>>> model
<quern.Model runs/first: step ..., ... parameters, context ..., vocabulary ...>
>>> quern.load("runs/first", checkpoint=model.step).weights_hash == model.weights_hash
True)";

inline constexpr const char* kModelDoc =
    R"(A trained model, returned by load(). Several threads may use it concurrently.

>>> model = quern.load("runs/first")
>>> text = "Once" + model.generate("Once", tokens=10))";

inline constexpr const char* kPathDoc = R"(The folder of the run.

>>> model.path
PosixPath('runs/first'))";

inline constexpr const char* kConfigDoc = R"(Every setting of the run, as a dict of tables.

>>> model.config["model"]["context"] == model.context
True)";

inline constexpr const char* kStepDoc = R"(Number of steps the model was trained for.

>>> model.step <= model.config["train"]["steps"]
True)";

inline constexpr const char* kParametersDoc = R"(Number of parameters.

>>> model.parameters > model.vocabulary * model.config["model"]["width"]
True)";

inline constexpr const char* kContextDoc = R"(Number of tokens per sequence in training and evaluation.

>>> tokens = model.encode("Once upon a time, in a house at the end of the road, there was a cat.")
>>> logits = model.logits(tokens[-model.context:]))";

inline constexpr const char* kMaxContextDoc =
    R"(Maximum number of tokens in a sequence.

This is `context`, or more if the setting model.max_context says so, as for imported models.

>>> model.max_context >= model.context
True)";

inline constexpr const char* kVocabularyDoc = R"(Number of rows in the token table: the last dimension of logits().

At least the number of tokens in the tokenizer. If the setting model.vocabulary is larger, the additional rows are
padding: no text encodes to them, generate() never draws them, and decode() rejects them.

>>> model.logits(model.encode("Once")).shape[-1] == model.vocabulary
True)";

inline constexpr const char* kWeightsHashDoc = R"(SHA-256 of the weights, as `quern info` prints it.

>>> model.weights_hash == quern.load(model.path).weights_hash
True)";

inline constexpr const char* kStateDictDoc =
    R"(Returns the weights: a dict from the name of a tensor to a float32 array.

The names and shapes are those in model.safetensors. The arrays are copies: changing them does not change the model.

>>> weights = model.state_dict()
>>> weights["wte.weight"].shape == (model.vocabulary, model.config["model"]["width"])
True
>>> sum(array.size for array in weights.values()) == model.parameters
True)";

inline constexpr const char* kExportDoc =
    R"(Writes the model for other programs, and returns the path.

to="hf" writes a folder that Hugging Face transformers opens: AutoModelForCausalLM.from_pretrained(path) gives the same
logits, and AutoTokenizer.from_pretrained(path) the same ids. to="gguf" writes a file for llama.cpp. dtype is "f32",
"f16", "bf16" or, for "gguf", "q8_0". The path must be new, or an empty folder; force=True replaces an earlier export.

A model with adapters needs a choice: to="peft" (a folder for Hugging Face PEFT) and to="gguf-lora" (a file for --lora of
llama.cpp) write the adapters alone; merge=True, with "hf" or "gguf", adds them to the weights of the model.

>>> folder = model.export("exported")
>>> sorted(path.name for path in folder.iterdir())
['config.json', 'model.safetensors', 'tokenizer.json', 'tokenizer_config.json'])";

inline constexpr const char* kImportDoc =
    R"(Makes a run of a model from elsewhere, and returns it, loaded.

source is a Hugging Face folder (config.json, safetensors, tokenizer.json), a GGUF file or, with base, the run of the
model that they belong to, a folder with adapters of Hugging Face PEFT; run, the folder of the run,
must be new or empty. context is the length of sequences in training, by default that of the model, at most 1024.

>>> import tempfile
>>> folder = model.export(tempfile.mkdtemp())
>>> imported = quern.import_model(folder, tempfile.mkdtemp())
>>> imported.weights_hash == model.weights_hash
True)";

inline constexpr const char* kEncodeDoc = R"(Returns the token ids of a str or of bytes, as int32.

>>> model.decode(model.encode("Once"))
'Once')";

inline constexpr const char* kDecodeDoc = R"(Returns the text of the token ids. Invalid UTF-8 becomes U+FFFD.

>>> model.decode(model.encode("Once"))
'Once')";

inline constexpr const char* kLogitsDoc = R"(Returns the logits of every position, as float32.

The shape is (T, V) for T tokens and (B, T, V) for tokens of shape (B, T). V is the vocabulary, padding rows included.
The logits at position t predict the token that follows tokens 0 ... t. T is at most `max_context`. `threads`: number of
threads, every core by default; results are bit-identical for any number.

>>> tokens = model.encode("Once upon")
>>> model.logits(tokens).shape == (len(tokens), model.vocabulary)
True)";

inline constexpr const char* kLossDoc =
    R"(Returns the mean loss, in nats, of predicting each token from the preceding tokens of its sequence.

`tokens` is one sequence, or several of equal length, of 2 to `max_context` + 1 tokens. `threads` as for logits().

>>> model.loss(model.encode("Once upon a time")) < model.loss(model.encode("emit a nopu ecnO"))
True)";

inline constexpr const char* kEvaluateDoc =
    R"(Evaluates like `quern eval`: on text, token shards or folders, or on held-out training text if none are given.

>>> sorted(model.evaluate())
['bits_per_byte', 'loss', 'perplexity', 'tokens'])";

inline constexpr const char* kGenerateDoc =
    R"(Continues `prompt` by up to `tokens` tokens and returns the generated text.

temperature: below 1 gives more likely text, above 1 more surprising text, 0 always the most likely token. top_k:
sample from the k most likely tokens only; 0 for all. top_p: sample only from the most likely tokens whose
probabilities add up to this. min_p: sample only from tokens at least this many times as likely as the most likely one.
repeat_penalty: above 1, tokens among the last repeat_window ones (0: all), prompt included, become less likely. The
penalty applies first, then temperature, top_k, top_p and min_p. stop: a list of str; the text ends before the first
occurrence of any of them.

The same prompt and seed give the same text with any number of threads, and the same text as `quern generate` prints
after the prompt. Without a prompt, the text starts with a new line; with "", at the beginning of a document. It ends
where the model ends the document; with ignore_end=True it contains "<|endoftext|>" there and continues. samples: return a list of this many texts; text i is the same for any number of them.

>>> len(model.generate("Once", tokens=20, samples=3))
3
>>> model.generate("Once", tokens=20, seed=7) == model.generate("Once", tokens=20, seed=7)
True
>>> "\n" in model.generate("Once", tokens=200, min_p=0.05, repeat_penalty=1.1, stop=["\n"])
False)";

inline constexpr const char* kStreamDoc =
    R"(Returns an iterator over the text of generate(), piece by piece as it is generated.

>>> "".join(model.stream("Once", tokens=20)) == model.generate("Once", tokens=20)
True)";

inline constexpr const char* kChatDoc =
    R"(Answers a conversation as the assistant and returns the answer.

messages: a list of {"role": ..., "content": ...}; the roles are "system", "user" and "assistant". They are written with
the model's chat template, or with chat_template: "chatml", or a file with a Jinja template. The answer ends where the
template ends a turn, where the model ends the text, or after `tokens` tokens. If the messages do not fit into the
model's context, the oldest are dropped, but never system messages at the front nor the last question. The other
arguments are those of generate().

The same messages and seed give the same answer with any number of threads, and the first answer of `quern chat`.

>>> with open("plain.jinja", "w") as file:
...     print("{% for message in messages %}{{ message.content }} {% endfor %}", end="", file=file)
>>> question = {"role": "user", "content": "Once"}
>>> answer = model.chat([question], chat_template="plain.jinja", tokens=10)
>>> answer == model.generate("Once ", tokens=10)
True
>>> again = model.chat([question, {"role": "assistant", "content": answer}, question], chat_template="plain.jinja"))";

inline constexpr const char* kTextStreamDoc = R"(The iterator that Model.stream() returns.

>>> pieces = model.stream("Once", tokens=20)
>>> next(pieces) + "".join(pieces) == model.generate("Once", tokens=20)
True)";

inline constexpr const char* kFinishDoc = R"(Why the text ended; None before its end.

"length" after `tokens` tokens, "end" where the model ended it, "stop" at a stop string.

>>> pieces = model.stream("Once", tokens=20)
>>> text = "".join(pieces)
>>> pieces.finish
'length')";

}  // namespace quern::python
