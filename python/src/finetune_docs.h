// The docstring of fine-tuning. tests/python/package_test.py runs the example.
#pragma once

namespace quern::python {

inline constexpr const char* kFinetuneDoc =
    R"(Adapts a trained model to conversations and returns a TrainResult; `out` is the folder of the run.

base: a run (its newest checkpoint), "RUN@best", "RUN@STEP", the folder of a checkpoint, a Hugging Face folder or a GGUF
file; the last two are first imported, into the folder `out` with "-base" at the end of its name. data: JSON Lines with
{"messages": [...]}, {"prompt": ..., "completion": ...} or {"text": ...}, a folder with train.jsonl and valid.jsonl, or
a list of them. Of messages, exactly what the assistant says is trained. chat_template ("chatml", or a file with a Jinja
template) is for a model that has none.

Low-rank adapters are trained, of rank 16 with alpha=32 and dropout=0 for all linear layers, or those of `targets`, such
as ["q_proj", "v_proj"]; with full=True all weights are. The other defaults are epochs=1, or as many updates as `steps`
says, rate=2e-4 (full=True: 2e-5), batch=4 sequences, and context=512 tokens: longer conversations are cut. `config` and
`set` have any other setting, as for train(), and the arguments above override them. The result is bit-identical to that
of `quern finetune` with the same settings, with any number of threads.

on_step, progress and resume are those of train(). To resume, give only `out` and what changes.

>>> base = quern.train(out="runs/bytes", tokenizer="byte", steps=3, set={"data.stories_bytes": 20_000})
>>> with open("chats.jsonl", "w") as file:
...     for word in ("red", "blue"):
...         print('{"prompt": "Say ' + word + '", "completion": "' + word + '"}', file=file)
>>> result = quern.finetune("runs/bytes", "chats.jsonl", out="runs/tuned", chat_template="chatml", epochs=2)
>>> result.finished
True
>>> answer = quern.load("runs/tuned").chat([{"role": "user", "content": "Say red"}], tokens=5))";

}  // namespace quern::python
