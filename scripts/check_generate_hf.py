#!/usr/bin/env python3
"""Checks that `quern generate` chooses tokens as Hugging Face `transformers` does: greedy text with and without a repeat
penalty, where several end tokens end it, and which tokens temperature, top-k, top-p and min-p leave, in what proportion.

Run by hand; neither the build nor the tests need it:
    cmake --build --preset release --target quern_program
    python3 -m venv venv && venv/bin/pip install torch==2.13.0 transformers safetensors tokenizers
    venv/bin/python scripts/check_generate_hf.py

Trains a small run with a BPE tokenizer and exports it. Tested with torch 2.13.0, transformers 5.23.0. Exits with 1 if
anything differs.
"""

import collections
import json
import pathlib
import subprocess
import sys
import tempfile

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

QUERN = pathlib.Path(__file__).resolve().parent.parent / "build/release/quern"
PROMPTS = ("Once upon a time", "There was a cat", "The")
LENGTH = 60
PENALTIES = (None, 0.8, 1.1, 1.3, 2.0)
FILTERS = ({}, {"top_k": 20}, {"top_p": 0.8}, {"min_p": 0.05}, {"temperature": 0.7, "min_p": 0.1},
           {"temperature": 1.5, "top_k": 30, "top_p": 0.9, "min_p": 0.05}, {"top_p": 0.5, "min_p": 0.3})
DRAWS = 4000


def quern(*arguments):
    run = subprocess.run([QUERN, *map(str, arguments)], capture_output=True, text=True)
    if run.returncode != 0:
        sys.exit(f"{arguments}: {run.stderr}")
    return run.stdout


def flags(options):
    return [word for name, value in options.items() for word in ("--" + name.replace("_", "-"), value)]


def samples(run, prompt, **options):
    return [json.loads(line) for line in quern("generate", run, "--prompt", prompt, "--json", *flags(options)).splitlines()]


def greedy(model, tokenizer, prompt, **options):
    ids = tokenizer(prompt, return_tensors="pt").input_ids
    out = model.generate(ids, max_new_tokens=LENGTH, do_sample=False, pad_token_id=0, **options)
    return out[0][ids.shape[1]:].tolist()


def check_greedy(run, model, tokenizer):
    for prompt in PROMPTS:
        for penalty in PENALTIES:
            options = {} if penalty is None else {"repeat_penalty": penalty, "repeat_window": 0}
            found = samples(run, prompt, tokens=LENGTH, temperature=0, **options)[0]["text"]
            expected = tokenizer.decode(greedy(model, tokenizer, prompt, repetition_penalty=penalty or 1.0))
            yield f"greedy, penalty {penalty}, {prompt!r}", found == expected.removesuffix("<|endoftext|>")


def check_end_tokens(run, model, tokenizer):
    whole = greedy(model, tokenizer, PROMPTS[0], repetition_penalty=1.3)
    ends = [whole[40], whole[20], tokenizer.eos_token_id]
    (run / "generation_config.json").write_text(json.dumps({"eos_token_id": ends}))
    found = samples(run, PROMPTS[0], tokens=LENGTH, temperature=0, repeat_penalty=1.3, repeat_window=0)[0]
    (run / "generation_config.json").unlink()
    expected = greedy(model, tokenizer, PROMPTS[0], repetition_penalty=1.3, eos_token_id=ends)[:-1]
    yield "end tokens", (found["text"], found["finish"]) == (tokenizer.decode(expected), "end")


def check_filters(run, model, tokenizer):
    """The first token of many samples: only what transformers leaves, and each about as often."""
    ids = tokenizer(PROMPTS[2], return_tensors="pt").input_ids
    for options in FILTERS:
        out = model.generate(ids, max_new_tokens=1, do_sample=True, output_scores=True, return_dict_in_generate=True,
                             pad_token_id=0, **{"top_k": 0, **options})
        probabilities = torch.softmax(out.scores[0][0].double(), -1).tolist()
        expected = {tokenizer.decode([i]): p for i, p in enumerate(probabilities)
                    if p > 0 and i != tokenizer.eos_token_id}
        drawn = samples(run, PROMPTS[2], tokens=1, samples=DRAWS, **options)
        counts = collections.Counter(sample["text"] for sample in drawn if sample["finish"] == "length")
        likely = {text: p for text, p in expected.items() if p * DRAWS >= 10}
        good = set(counts) <= set(expected) and all(
            abs(counts[text] - p * DRAWS) < 5 * (p * (1 - p) * DRAWS) ** 0.5 + 1 for text, p in likely.items())
        yield f"filters {options}: {len(expected)} tokens left", good


def main():
    with tempfile.TemporaryDirectory() as folder:
        run = pathlib.Path(folder) / "run"
        quern("train", "--layers", 2, "--heads", 2, "--width", 64, "--context", 128, "--batch", 8, "--tokenizer", "bpe",
              "--set", "data.vocabulary=300", "--set", "data.stories_bytes=200000", "--steps", 200, "--run", run)
        quern("export", run, "--out", f"{folder}/hf")
        model = AutoModelForCausalLM.from_pretrained(f"{folder}/hf")
        tokenizer = AutoTokenizer.from_pretrained(f"{folder}/hf")
        wrong = 0
        for check in (check_greedy, check_end_tokens, check_filters):
            for name, good in check(run, model, tokenizer):
                print("same     " if good else "DIFFERENT", name)
                wrong += not good
        return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
