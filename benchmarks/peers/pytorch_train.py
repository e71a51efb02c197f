#!/usr/bin/env python3
"""Trains the model of a preset with PyTorch and with `quern bench train`, interleaved, and prints the ratio.

Run by hand; neither the build nor the tests need PyTorch:
    python3 -m venv venv && venv/bin/pip install torch==2.13.0
    venv/bin/python benchmarks/peers/pytorch_train.py --preset tiny --threads 2

Every round runs quern, PyTorch eager and PyTorch compiled one after the other, so that other load on the machine
affects all of them. The best round of each is reported, and the faster PyTorch is the reference. All train GPT-2, or
Llama for the presets of that name, with AdamW in fp32. The tokens are random ids below the vocabulary: only the shapes affect the speed.
"""

import argparse
import json
import math
import os
import subprocess
import sys
import time

try:
    import torch
    import torch.nn.functional as F
except ImportError:
    sys.exit("pytorch_train: PyTorch is not installed; pip install torch==2.13.0")

PRESETS = {  # layers, heads, width, T, vocabulary, batch
    "tiny": (4, 4, 128, 128, 96, 16),
    "small": (6, 6, 384, 256, 96, 8),
    "gpt2": (12, 12, 768, 64, 50304, 4),
    "llama-tiny": (4, 4, 128, 128, 96, 16),
    "llama-small": (6, 6, 384, 256, 96, 8),
}
KV_HEADS = 2  # of the Llamas
WARMUP = 3  # steps before the clock starts in every round; compilation happens in the first round's


class Block(torch.nn.Module):
    def __init__(self, C, heads):
        super().__init__()
        self.heads = heads
        self.ln_1, self.ln_2 = torch.nn.LayerNorm(C), torch.nn.LayerNorm(C)
        self.c_attn, self.c_proj = torch.nn.Linear(C, 3 * C), torch.nn.Linear(C, C)
        self.c_fc, self.mlp_proj = torch.nn.Linear(C, 4 * C), torch.nn.Linear(4 * C, C)

    def attention(self, x):
        B, T, C = x.shape
        q, k, v = (part.view(B, T, self.heads, -1).transpose(1, 2) for part in self.c_attn(x).split(C, dim=2))
        out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.c_proj(out.transpose(1, 2).reshape(B, T, C))

    def forward(self, x):
        x = x + self.attention(self.ln_1(x))
        return x + self.mlp_proj(F.gelu(self.c_fc(self.ln_2(x)), approximate="tanh"))


class Gpt2(torch.nn.Module):
    def __init__(self, layers, heads, C, T, V):
        super().__init__()
        self.wte, self.wpe = torch.nn.Embedding(V, C), torch.nn.Embedding(T, C)
        self.blocks = torch.nn.ModuleList(Block(C, heads) for _ in range(layers))
        self.ln_f = torch.nn.LayerNorm(C)
        for p in self.parameters():
            if p.dim() > 1:
                torch.nn.init.normal_(p, std=0.02)

    def forward(self, inputs, targets):
        x = self.wte(inputs) + self.wpe.weight[:inputs.shape[1]]
        for block in self.blocks:
            x = block(x)
        logits = F.linear(self.ln_f(x), self.wte.weight)  # tied
        return F.cross_entropy(logits.view(-1, logits.shape[-1]), targets.view(-1))


class LlamaBlock(torch.nn.Module):
    def __init__(self, C, heads):
        super().__init__()
        self.heads, self.D = heads, C // heads
        inner = (8 * C // 3 + 31) // 32 * 32
        linear = lambda rows, columns: torch.nn.Linear(rows, columns, bias=False)
        self.norm_1, self.norm_2 = torch.nn.RMSNorm(C, eps=1e-5), torch.nn.RMSNorm(C, eps=1e-5)
        self.q, self.k, self.v = linear(C, C), linear(C, KV_HEADS * self.D), linear(C, KV_HEADS * self.D)
        self.o, self.gate, self.up, self.down = linear(C, C), linear(C, inner), linear(C, inner), linear(inner, C)

    def attention(self, x, cos, sin):
        B, T, C = x.shape
        q, k, v = (part.view(B, T, -1, self.D).transpose(1, 2) for part in (self.q(x), self.k(x), self.v(x)))
        q, k = (torch.cat((part[..., :self.D // 2] * cos - part[..., self.D // 2:] * sin,
                           part[..., self.D // 2:] * cos + part[..., :self.D // 2] * sin), dim=-1) for part in (q, k))
        out = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        return self.o(out.transpose(1, 2).reshape(B, T, C))

    def forward(self, x, cos, sin):
        x = x + self.attention(self.norm_1(x), cos, sin)
        n = self.norm_2(x)
        return x + self.down(F.silu(self.gate(n)) * self.up(n))


class Llama(torch.nn.Module):
    def __init__(self, layers, heads, C, T, V):
        super().__init__()
        self.tokens = torch.nn.Embedding(V, C)
        self.blocks = torch.nn.ModuleList(LlamaBlock(C, heads) for _ in range(layers))
        self.norm = torch.nn.RMSNorm(C, eps=1e-5)
        D = C // heads
        angles = torch.outer(torch.arange(T).float(), 10000.0 ** (-torch.arange(0, D, 2).float() / D))
        self.register_buffer("cos", angles.cos())
        self.register_buffer("sin", angles.sin())
        for p in self.parameters():
            if p.dim() > 1:
                torch.nn.init.normal_(p, std=0.02)

    def forward(self, inputs, targets):
        x = self.tokens(inputs)
        for block in self.blocks:
            x = block(x, self.cos, self.sin)
        logits = F.linear(self.norm(x), self.tokens.weight)  # tied
        return F.cross_entropy(logits.view(-1, logits.shape[-1]), targets.view(-1))


class TorchTrainer:
    """Steps of one model, as in Quern: zero the gradient, forward, backward, clip, AdamW."""

    def __init__(self, family, sizes, compiled):
        layers, heads, C, T, V, batch = sizes
        torch.manual_seed(1)
        self.model = family(layers, heads, C, T, V)
        self.forward = torch.compile(self.model) if compiled else self.model
        parameters = list(self.model.parameters())
        groups = [{"params": [p for p in parameters if p.dim() > 1], "weight_decay": 0.1},
                  {"params": [p for p in parameters if p.dim() == 1], "weight_decay": 0.0}]
        self.optimizer = torch.optim.AdamW(groups, lr=1e-3, betas=(0.9, 0.99), fused=True)
        self.ids = torch.randint(V, (batch, T + 1))
        self.vocabulary = V
        self.first_loss = None

    def step(self):
        self.optimizer.zero_grad(set_to_none=True)
        loss = self.forward(self.ids[:, :-1].contiguous(), self.ids[:, 1:].contiguous())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        return loss

    def tokens_per_s(self, steps):
        for _ in range(WARMUP):
            loss = self.step().item()
            self.first_loss = self.first_loss or loss
        start = time.perf_counter()
        for _ in range(steps):
            loss = self.step()
        last = loss.item()
        seconds = time.perf_counter() - start
        # The same batch in every step: if the loss does not fall, nothing was trained.
        if not last < self.first_loss < 2 * math.log(self.vocabulary):
            sys.exit(f"pytorch_train: wrong answer: the loss went from {self.first_loss} to {last}")
        return self.ids.shape[0] * (self.ids.shape[1] - 1) * steps / seconds


def quern_tokens_per_s(options):
    # --quick: one timed round, as for PyTorch. Without it quern reports the best of five.
    command = [options.quern, "bench", "train", "--preset", options.preset, "--threads", str(options.threads),
               "--steps", str(options.steps), "--batch", str(options.batch), "--context", str(options.context),
               "--quick", "--json"]
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except OSError as error:
        sys.exit(f"pytorch_train: {options.quern}: {error.strerror}; build it (make) or name it with --quern PATH")
    try:
        found = json.loads(done.stdout)
        speed = found["tokens_per_s"]
    except (ValueError, KeyError):
        reason = (done.stderr.strip() or done.stdout.strip() or "no output").splitlines()[-1]
        sys.exit(f"pytorch_train: `{' '.join(command)}` gave no tokens_per_s (exit {done.returncode}): {reason}")
    # Exit code 1 may also mean a missed bar, which does not matter here.
    for result in found.get("results", []):
        if (result.get("reference") or "").startswith("wrong answer"):
            sys.exit(f"pytorch_train: quern: {result['name']}: {result['reference']}")
    return speed


def contestants(options):
    """Functions that measure one round each. If torch.compile does not work here, it is noted and skipped."""
    layers, heads, C, T, V, batch = PRESETS[options.preset]
    sizes = (layers, heads, C, options.context or T, V, options.batch or batch)
    found, notes = {}, []
    if options.quern != "none":
        found["quern"] = lambda: quern_tokens_per_s(options)
    family = Llama if options.preset.startswith("llama") else Gpt2
    eager = TorchTrainer(family, sizes, compiled=False)
    found["pytorch eager"] = lambda: eager.tokens_per_s(options.steps)
    try:
        compiled = TorchTrainer(family, sizes, compiled=True)
        compiled.step()
        found["pytorch compiled"] = lambda: compiled.tokens_per_s(options.steps)
    except Exception as error:  # no C++ compiler, or no support for this platform
        notes.append(f"torch.compile is not usable here: {str(error).strip().splitlines()[0]}")
    return found, notes


def measure(options):
    runs, notes = contestants(options)
    rounds = {name: [] for name in runs}
    for _ in range(options.rounds):
        for name, run in runs.items():
            rounds[name].append(run())
    best = {name: max(values) for name, values in rounds.items()}
    reference = max((name for name in best if name != "quern"), key=best.get)
    return {"preset": options.preset, "batch": options.batch, "context": options.context,
            "threads": options.threads, "steps": options.steps, "torch": torch.__version__,
            "load_average": os.getloadavg()[0], "tokens_per_s": best, "rounds": rounds, "reference": reference,
            "ratio": best["quern"] / best[reference] if "quern" in best else None, "notes": notes}


def print_table(result):
    rounds = len(result["rounds"]["pytorch eager"])
    print(f"{result['preset']}, threads {result['threads']}, torch {result['torch']}, best of {rounds} rounds of"
          f" {result['steps']} steps, load {result['load_average']:.1f}")
    for name, values in result["rounds"].items():
        print(f"  {name:17} {max(values):10.0f} tokens/s   (lowest round {min(values):.0f})")
    for note in result["notes"]:
        print(f"  {note}")
    if result["ratio"] is not None:
        print(f"  quern / {result['reference']}: {result['ratio']:.2f}")


def positive(text):
    if (value := int(text)) < 1:
        raise ValueError
    return value


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--preset", choices=PRESETS, default="tiny")
    parser.add_argument("--threads", type=positive, default=os.cpu_count())
    parser.add_argument("--rounds", type=positive, default=5)
    parser.add_argument("--steps", type=positive, default=20, help="timed steps per round")
    parser.add_argument("--batch", type=positive, default=0, help="sequences per step (default: the preset's)")
    parser.add_argument("--context", type=positive, default=0, help="tokens per sequence (default: the preset's)")
    parser.add_argument("--quern", metavar="PATH", default="build/release/quern",
                        help="path of quern; 'none' to measure only PyTorch")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    result = measure(options)
    print(json.dumps(result)) if options.json else print_table(result)


if __name__ == "__main__":
    main()
