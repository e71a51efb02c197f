#!/usr/bin/env python3
"""Checks that Hugging Face tools can load a run: its newest checkpoint with `safetensors` and `transformers`, its
tokenizer.json with `tokenizers`; and that the model's loss is the one that `quern eval` reports.

Run by hand; neither the build nor the tests need it:
    cmake --build --preset release --target quern_program
    python3 -m venv venv && venv/bin/pip install torch==2.13.0 transformers safetensors tokenizers numpy
    venv/bin/python scripts/check_checkpoint_hf.py RUN_DIR [TEXT_FILE]

Without TEXT_FILE, the model generates the text. The environment variable QUERN overrides build/release/quern. Tested
with torch 2.13.0, transformers 5.22.2, safetensors 0.8.0, tokenizers 0.23.3. Exits with 1 if anything differs.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy
import safetensors.numpy
import tokenizers
import torch
import transformers

QUERN = os.environ.get("QUERN", "build/release/quern")
WINDOWS = 8  # of generated text
TOLERANCE = 3e-7  # of the loss, relative: both fp32, at most 1e-8 apart; the other GELU differs by 4e-6
SHARD_HEADER = 1024  # bytes in a token shard before its 16-bit tokens


class Report:
    def __init__(self):
        self.failures = 0

    def line(self, good, text):
        self.failures += not good
        print("ok      " if good else "DIFFERS ", text)


def quern(*words):
    done = subprocess.run([QUERN, *map(str, words)], capture_output=True)
    if done.returncode != 0:
        sys.exit(f"check_checkpoint_hf: {done.stderr.decode(errors='replace').strip()}")
    return done.stdout


def newest_checkpoint(run):
    found = sorted((run / "checkpoints").glob("step-*"))
    if not found:
        sys.exit(f"check_checkpoint_hf: {run / 'checkpoints'}: expected a checkpoint, found none")
    return found[-1]


def check_tensors(report, checkpoint):
    """The names and shapes of the weights match those of the moments."""
    weights = safetensors.numpy.load_file(checkpoint / "model.safetensors")
    moments = safetensors.numpy.load_file(checkpoint / "optimizer.safetensors")
    expected = {f"{name}.{m}": value.shape for name, value in weights.items() for m in "mv"}
    report.line({name: value.shape for name, value in moments.items()} == expected,
                f"safetensors reads {len(weights)} weights and {len(moments)} moments")
    return weights


def load_model(report, checkpoint, weights):
    model, info = transformers.GPT2LMHeadModel.from_pretrained(checkpoint, output_loading_info=True,
                                                               local_files_only=True)
    problems = {key: value for key, value in info.items() if value}
    report.line(not problems, f"transformers loads GPT2LMHeadModel, complaints: {problems or 'none'}")
    theirs = model.transformer.state_dict()
    same = all(numpy.array_equal(value, theirs[name].numpy()) for name, value in weights.items())
    report.line(same and model.lm_head.weight is model.transformer.wte.weight,
                "its weights equal those in the file, the output projection is the token table")
    return model.eval()


def token_ids(report, run, text, folder):
    """Quern's token ids of the text, from a shard that it writes; `tokenizers` must give the same."""
    quern("tokenize", text, "--tokenizer", run, "--out", folder)
    ours = numpy.fromfile(folder / "tokens.bin", dtype="<u2", offset=SHARD_HEADER).astype(numpy.int64)
    tokenizer = tokenizers.Tokenizer.from_file(str(run / "tokenizer.json"))
    tokenizer.encode_special_tokens = True  # in a document they are ordinary text
    theirs = tokenizer.encode(text.read_bytes().decode()).ids
    end = tokenizer.token_to_id("<|endoftext|>")  # follows every document if the tokenizer has one
    report.line(ours.tolist() == theirs + ([] if end is None else [end]),
                f"tokenizers gives the {len(theirs)} ids of the text, the end of text is {end}")
    return ours


def check_vocabulary(report, run, model):
    """The table may have more rows than the tokenizer has tokens; both tools agree on the end-of-text token."""
    tokenizer = tokenizers.Tokenizer.from_file(str(run / "tokenizer.json"))
    rows, tokens = model.get_input_embeddings().weight.shape[0], tokenizer.get_vocab_size()
    report.line(rows == model.config.vocab_size >= tokens, f"the table has {rows} rows for {tokens} tokens")
    end = tokenizer.token_to_id("<|endoftext|>")
    report.line(model.config.eos_token_id == end, f"transformers stops at token {end}")


def mean_loss(model, ids):
    """Mean over consecutive windows, split as in `quern eval`."""
    T = model.config.n_positions
    count = (len(ids) - 1) // T
    total = 0.0
    for start in range(0, count * T, T):
        window = torch.from_numpy(ids[start:start + T + 1])
        with torch.no_grad():
            logits = model(window[None, :-1]).logits[0]
        total += torch.nn.functional.cross_entropy(logits, window[1:], reduction="none").double().sum().item()
    return total / (count * T), count * T


def check_loss(report, run, text, model, ids):
    theirs, tokens = mean_loss(model, ids)
    ours = json.loads(quern("eval", "--run", run, text, "--json"))
    apart = abs(ours["loss"] / theirs - 1)
    report.line(ours["tokens"] == tokens and apart < TOLERANCE,
                f"loss on {ours['tokens']} tokens: quern {ours['loss']:.9f}, transformers {theirs:.9f} on {tokens},"
                f" apart {apart:.1e}")


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    transformers.utils.logging.disable_progress_bar()
    run, report = pathlib.Path(sys.argv[1]), Report()
    checkpoint = newest_checkpoint(run)
    print(f"{checkpoint}; torch {torch.__version__}, transformers {transformers.__version__},"
          f" safetensors {safetensors.__version__}, tokenizers {tokenizers.__version__}")
    model = load_model(report, checkpoint, check_tensors(report, checkpoint))
    check_vocabulary(report, run, model)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        if len(sys.argv) == 3:
            text = pathlib.Path(sys.argv[2])
        else:
            text = folder / "text.txt"
            # A byte-level token may split a character; the comparison needs valid text.
            written = quern("generate", "--run", run, "--tokens", (WINDOWS + 1) * model.config.n_positions,
                            "--ignore-end")
            text.write_bytes(written.decode(errors="replace").encode())
        check_loss(report, run, text, model, token_ids(report, run, text, folder))
    return 1 if report.failures else 0


if __name__ == "__main__":
    sys.exit(main())
