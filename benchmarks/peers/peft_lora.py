#!/usr/bin/env python3
"""Fine-tunes a Hugging Face model by LoRA with PEFT and PyTorch, and with `quern finetune`, and prints the ratio.

Run by hand; neither the build nor the tests need PyTorch:
    python3 -m venv venv && venv/bin/pip install torch==2.13.0 transformers peft
    venv/bin/python benchmarks/peers/peft_lora.py SmolLM2-135M-Instruct --threads 2
    venv/bin/python benchmarks/peers/peft_lora.py SmolLM2-135M-Instruct --threads 2 --quern none --json

The model is a Hugging Face folder. All train adapters of rank 16 (alpha 32) of every linear layer except the output,
with AdamW in fp32 and gradient clipping, on batches of 4 x 256 tokens. Every round runs quern, PyTorch eager and
PyTorch compiled one after the other, each in a process of its own, so that other load on the machine affects all of
them and that peak memory is that of one. Steps are timed one by one; the first of each round do not count. The fastest
step of all rounds is compared, and the faster PyTorch is the reference; the median is printed too. PyTorch trains on
random ids below the vocabulary, Quern on random words that are cut to 256 tokens. Every token is a target for both:
where no target counts, as in the questions of conversations, Quern computes no logits and would be faster.

The JSON also has the processor time of PyTorch's steps. With --threads 1 it depends little on other load; with
more threads it includes waiting, so it says nothing about speed.
"""

import argparse
import json
import os
import pathlib
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time

RANK, ALPHA, RATE = 16, 32, 2e-4
WARMUP = 2  # steps of each round before the clock starts; the first one compiles


def trainer(options, compiled):
    """A function that does one step and returns the loss, and the number of weights that it trains."""
    import peft
    import torch
    import transformers

    torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    base = transformers.AutoModelForCausalLM.from_pretrained(options.model, dtype=torch.float32)
    config = peft.LoraConfig(r=RANK, lora_alpha=ALPHA, target_modules="all-linear", task_type="CAUSAL_LM",
                             fan_in_fan_out=base.config.model_type == "gpt2")
    model = peft.get_peft_model(base, config).train()
    forward = torch.compile(model) if compiled else model
    parameters = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(parameters, lr=RATE, weight_decay=0.0, fused=True)
    ids = torch.randint(base.config.vocab_size, (options.batch, options.context + 1))
    inputs, targets = ids[:, :-1].contiguous(), ids[:, 1:].flatten()

    def step():
        optimizer.zero_grad(set_to_none=True)
        logits = forward(input_ids=inputs, use_cache=False).logits
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        return loss.item()

    return step, sum(p.numel() for p in parameters)


def work(options):
    """A contestant in its own process: one line of JSON for every line on standard input."""
    step, trainable = trainer(options, options.worker == "pytorch compiled")
    first = None
    for _ in sys.stdin:
        seconds, processor_seconds, loss = [], [], None
        for number in range(WARMUP + options.steps):
            start, processor_start = time.perf_counter(), time.process_time()
            loss = step()
            first = loss if first is None else first
            if number >= WARMUP:
                seconds.append(time.perf_counter() - start)
                processor_seconds.append(time.process_time() - processor_start)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        print(json.dumps({"seconds": seconds, "processor_seconds": processor_seconds, "peak_bytes": peak,
                          "first_loss": first, "last_loss": loss, "trainable": trainable}), flush=True)


class PyTorch:
    def __init__(self, name, options):
        words = [sys.executable, "-W", "ignore", __file__, options.model, "--worker", name]
        for flag in ("threads", "batch", "context", "steps"):
            words += [f"--{flag}", str(getattr(options, flag))]
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def round(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"exit code {self.process.wait()}")
        found = json.loads(line)
        # The same batch in every step: if the loss does not fall, nothing was trained.
        if not found["last_loss"] < found["first_loss"]:
            sys.exit(f"peft_lora: wrong answer: the loss went from {found['first_loss']} to {found['last_loss']}")
        return found

    def stop(self):
        self.process.stdin.close()
        self.process.wait()


class Quern:
    """Every use of Quern in this script."""

    def __init__(self, options, folder):
        self.options, self.folder, self.rounds = options, pathlib.Path(folder), 0
        self.run("import", options.model, "--run", self.folder / "base")
        source = random.Random(1)
        words = ["".join(source.choices("abcdefghijklmnopqrstuvwxyz", k=source.randint(2, 8))) for _ in range(500)]
        with open(self.folder / "data.jsonl", "w") as file:
            for _ in range(options.batch * (WARMUP + options.steps) * 2):
                print(json.dumps({"text": " ".join(source.choices(words, k=options.context))}), file=file)

    def run(self, *arguments):
        words = [self.options.quern, *map(str, arguments)]
        try:
            done = subprocess.run(words, capture_output=True, text=True)
        except OSError as error:
            sys.exit(f"peft_lora: {words[0]}: {error.strerror}; build it (make) or name it with --quern PATH")
        if done.returncode != 0:
            sys.exit(f"peft_lora: {' '.join(words)}: {done.stderr}")
        return done.stdout

    def round(self):
        self.rounds += 1
        run = self.folder / f"run-{self.rounds}"
        self.run("finetune", "--base", self.folder / "base", self.folder / "data.jsonl", "--run", run,
                 "--rank", RANK, "--alpha", ALPHA, "--rate", RATE, "--batch", self.options.batch,
                 "--context", self.options.context, "--threads", self.options.threads,
                 "--steps", WARMUP + self.options.steps, "--set", "log.interval=1")
        self.check_targets(run)
        lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
        steps = [line for line in lines if "loss" in line]
        elapsed = [line["elapsed"] for line in steps]
        seconds = [after - before for before, after in zip(elapsed, elapsed[1:])]
        return {"seconds": seconds[WARMUP - 1:], "peak_bytes": max(line["memory"]["peak"] for line in steps),
                "first_loss": steps[0]["loss"], "last_loss": steps[-1]["loss"], "trainable": None}

    def check_targets(self, run):
        """Quern computes no logits where no target counts, PyTorch computes all: all targets must count."""
        rows = json.loads(self.run("data", "batches", "--run", run))["rows"]
        targets = [target for row in rows for target in row["targets"]]
        counted = sum(target != -1 for target in targets)
        if counted < 0.98 * self.options.batch * self.options.context:
            sys.exit(f"peft_lora: quern trains on {counted} of {self.options.batch} x {self.options.context} targets")

    def stop(self):
        pass


def summary(rounds, tokens):
    seconds = [value for one in rounds for value in one["seconds"]]
    return {"tokens_per_s": tokens / min(seconds), "median_tokens_per_s": tokens / statistics.median(seconds),
            "peak_bytes": max(one["peak_bytes"] for one in rounds), "trainable": rounds[0]["trainable"],
            "first_loss": rounds[0]["first_loss"], "last_loss": rounds[-1]["last_loss"], "step_seconds": seconds,
            "step_processor_seconds": [value for one in rounds for value in one.get("processor_seconds", [])]}


def measure(options, folder):
    contestants = {"quern": Quern(options, folder)} if options.quern != "none" else {}
    for name in ("pytorch eager", "pytorch compiled"):
        if name.split()[1] in options.pytorch:
            contestants[name] = PyTorch(name, options)
    rounds, notes = {name: [] for name in contestants}, []
    for _ in range(options.rounds):
        for name in list(contestants):
            try:
                rounds[name].append(contestants[name].round())
            except RuntimeError as error:  # for example, torch.compile without a C++ compiler
                notes.append(f"{name} does not work here: {error}")
                del contestants[name], rounds[name]
    for contestant in contestants.values():
        contestant.stop()
    results = {name: summary(found, options.batch * options.context) for name, found in rounds.items()}
    peers = [name for name in results if name != "quern"]
    reference = max(peers, key=lambda name: results[name]["tokens_per_s"]) if peers else None
    compared = reference is not None and "quern" in results
    ratio = results["quern"]["tokens_per_s"] / results[reference]["tokens_per_s"] if compared else None
    return {"model": options.model, "batch": options.batch, "context": options.context, "threads": options.threads,
            "steps": options.steps, "rounds": options.rounds, "load_average": os.getloadavg()[0], "results": results,
            "reference": reference, "ratio": ratio, "notes": notes}


def print_table(found):
    print(f"{found['model']}, batch {found['batch']} x {found['context']}, threads {found['threads']}, "
          f"{found['rounds']} rounds of {found['steps']} steps, load {found['load_average']:.1f}")
    for name, result in found["results"].items():
        print(f"  {name:17} {result['tokens_per_s']:8.1f} tokens/s   (median {result['median_tokens_per_s']:.1f}),"
              f" peak memory {result['peak_bytes'] / 2**20:.0f} MiB")
    for note in found["notes"]:
        print(f"  {note}")
    if found["ratio"] is not None:
        print(f"  quern / {found['reference']}: {found['ratio']:.2f}")


def positive(text):
    if (value := int(text)) < 1:
        raise ValueError
    return value


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", metavar="DIR", help="a Hugging Face folder")
    parser.add_argument("--threads", type=positive, default=os.cpu_count())
    parser.add_argument("--rounds", type=positive, default=3)
    parser.add_argument("--steps", type=positive, default=5, help="timed steps per round")
    parser.add_argument("--batch", type=positive, default=4, help="sequences per step")
    parser.add_argument("--context", type=positive, default=256, help="tokens per sequence")
    parser.add_argument("--pytorch", default="eager,compiled", help="which of the two to measure")
    parser.add_argument("--quern", metavar="PATH", default="build/release/quern",
                        help="path of quern; 'none' to measure only PyTorch")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        return work(options)
    with tempfile.TemporaryDirectory() as folder:
        found = measure(options, folder)
    print(json.dumps(found)) if options.json else print_table(found)


if __name__ == "__main__":
    main()
