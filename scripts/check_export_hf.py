#!/usr/bin/env python3
"""Checks that Hugging Face `transformers` opens what Model.export() writes, and the folder of a checkpoint: the model by
AutoModelForCausalLM and AutoModel, the tokenizer by AutoTokenizer; and that ids, texts and logits are those of Quern.

Run by hand; neither the build nor the tests need it:
    cmake --build --preset release --target quern_python
    python3 -m venv venv && venv/bin/pip install torch==2.13.0 transformers safetensors tokenizers numpy
    venv/bin/python scripts/check_export_hf.py [RUN_DIR...]

Without RUN_DIR, trains four small runs, with byte, char and BPE tokenizers and with an untied output, and checks each. Quern's side runs in the
Python that the package was built for, QUERN_PYTHON or /usr/bin/python3, with its own NumPy. Tested with torch 2.13.0,
transformers 5.23.0, tokenizers 0.23.3. Exits with 1 if anything differs.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

PACKAGE = pathlib.Path(__file__).resolve().parent.parent / "build/release/python"
TOLERANCE = 1e-4  # of logits, absolute
TEXTS = ["Once upon a time", "the cat  sat.\n\nThe dog ran,  and then it slept .", " leading and trailing ", "I'll don't we've",
         "a" * 40, "caf\u00e9 \u4e2d\u6587 \U0001f600", "x<|endoftext|>y", ""]
SETTINGS = {"model.layers": 2, "model.heads": 2, "model.width": 64, "model.context": 64, "train.batch": 8,
            "data.stories_bytes": 100_000, "data.vocabulary": 400, "optimizer.warmup": 10}
PROMPT, LENGTH = "Once upon", 20


# Quern's side: prints, as JSON, what `transformers` should give.

def train(folder):
    import quern
    for kind, tied in (("byte", True), ("char", True), ("bpe", True), ("bpe", False)):
        quern.train(out=f"{folder}/{kind}{'' if tied else '-untied'}", steps=100, progress=False,
                    set={**SETTINGS, "data.tokenizer": kind, "model.tied_output": tied})


def encoded(model, text):
    """None if the text has a character that the vocabulary lacks."""
    import quern
    try:
        return model.encode(text).tolist()
    except quern.Error:
        return None


def expected(run, folder):
    import numpy
    import quern
    model = quern.load(run)
    tokens = numpy.random.default_rng(1).integers(0, 50, (3, model.context))
    numpy.save(f"{folder}/logits.npy", model.logits(tokens))
    print(json.dumps({"model": repr(model), "tokenizer": model.config["data"]["tokenizer"],
                      "exported": str(model.export(f"{folder}/exported")), "vocabulary": model.vocabulary,
                      "ids": {text: encoded(model, text) for text in TEXTS}, "tokens": tokens.tolist(),
                      "prompt": model.encode(PROMPT).tolist(),
                      "continuation": model.generate(PROMPT, tokens=LENGTH, temperature=0)}))


def by_quern(*words):
    program = os.environ.get("QUERN_PYTHON", "/usr/bin/python3")
    done = subprocess.run([program, "-B", __file__, *map(str, words)], env={**os.environ, "PYTHONPATH": str(PACKAGE)},
                          capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"check_export_hf: {done.stderr.strip()}")
    return done.stdout


# The side of transformers.

class Report:
    def __init__(self):
        self.failures = 0

    def line(self, good, text):
        self.failures += not good
        print("ok      " if good else "DIFFERS ", text)


def check_tokenizer(report, ours, path):
    import transformers
    tokenizer = transformers.AutoTokenizer.from_pretrained(path)
    report.line(isinstance(tokenizer, transformers.PreTrainedTokenizerFast) and len(tokenizer) == ours["vocabulary"],
                f"AutoTokenizer gives {type(tokenizer).__name__}, a PreTrainedTokenizerFast, with {len(tokenizer)} tokens")
    texts = {text: ids for text, ids in ours["ids"].items() if ids is not None}
    different = [text for text, ids in texts.items()
                 if tokenizer(text)["input_ids"] != ids or tokenizer.decode(ids) != text]
    report.line(len(texts) >= 4 and not different,
                f"{len(texts)} texts have the same ids and decode to themselves, except {different or 'none'}")
    return tokenizer


def check_model(report, ours, path, folder):
    import numpy
    import torch
    import transformers
    model, info = transformers.AutoModelForCausalLM.from_pretrained(path, output_loading_info=True)
    problems = {key: value for key, value in info.items() if value}
    report.line(not problems, f"AutoModelForCausalLM gives {type(model).__name__}, complaints: {problems or 'none'}")
    tokens = torch.tensor(ours["tokens"])
    with torch.no_grad():
        logits = model.eval()(tokens).logits.numpy()
    apart = float(numpy.abs(numpy.load(folder / "logits.npy") - logits).max())
    report.line(apart < TOLERANCE, f"logits of {tokens.numel()} tokens are at most {apart:.1e} apart")
    plain = transformers.AutoModel.from_pretrained(path)
    report.line(type(plain).__name__ == "GPT2Model", f"AutoModel gives {type(plain).__name__}")
    return model


def check_generation(report, ours, model, tokenizer):
    """The most probable continuation, token by token."""
    import torch
    prompt = torch.tensor([ours["prompt"]])
    with torch.no_grad():
        ids = model.generate(prompt, max_new_tokens=LENGTH, do_sample=False)[0]
    found = tokenizer.decode(ids[prompt.shape[1]:], skip_special_tokens=True)
    report.line(found == ours["continuation"], f"both continue with {found!r}")


def check_run(report, run, folder):
    folder.mkdir()
    ours = json.loads(by_quern("--expected", run, folder))
    print(f"{ours['model']}, tokenizer {ours['tokenizer']}")
    newest = sorted((pathlib.Path(run) / "checkpoints").glob("step-*"))[-1]
    for path in (ours["exported"], newest):
        print(f"  {path}")
        tokenizer = check_tokenizer(report, ours, path)
        check_generation(report, ours, check_model(report, ours, path, folder), tokenizer)


def main():
    if sys.argv[1:2] == ["--train"]:
        return train(sys.argv[2])
    if sys.argv[1:2] == ["--expected"]:
        return expected(*sys.argv[2:])
    os.environ.setdefault("HF_HUB_OFFLINE", "1")  # nothing here needs the network
    import torch
    import transformers
    transformers.utils.logging.disable_progress_bar()
    print(f"torch {torch.__version__}, transformers {transformers.__version__}")
    report = Report()
    with tempfile.TemporaryDirectory() as name:
        folder, runs = pathlib.Path(name), sys.argv[1:]
        if not runs:
            by_quern("--train", folder)
            runs = [folder / kind for kind in ("byte", "char", "bpe", "bpe-untied")]
        for number, run in enumerate(runs):
            check_run(report, run, folder / str(number))
    return 1 if report.failures else 0


if __name__ == "__main__":
    sys.exit(main())
