#!/usr/bin/env python3
"""Counts what PyTorch saves in forward for backward, in bytes per token, and compares it with `quern plan`.

Run by hand; neither the build nor the tests need PyTorch:
    python3 -m venv venv && venv/bin/pip install torch==2.13.0
    venv/bin/python benchmarks/peers/pytorch_activations.py --preset small

Counts the storages that autograd saves, each once, without parameters. The logits are reported separately: Quern never
stores all of them.
"""

import argparse
import json
import os
import subprocess

from pytorch_train import PRESETS, Gpt2, torch


def saved_bytes(sizes, precision):
    """Bytes that autograd saves in one step's forward pass, without logits, and those of the logits."""
    layers, heads, C, T, V, batch = sizes
    torch.manual_seed(1)
    model = Gpt2(layers, heads, C, T, V)
    parameters = {p.untyped_storage().data_ptr() for p in model.parameters()}
    storages, logits = {}, {}

    def pack(tensor):
        storage = tensor.untyped_storage()
        if tensor.is_floating_point() and storage.data_ptr() not in parameters:
            kept = logits if tensor.shape and tensor.shape[-1] == V else storages
            kept[storage.data_ptr()] = (storage.nbytes(), tensor)  # holds the tensor, so that its address is not reused
        return tensor

    ids = torch.randint(V, (batch, T + 1))
    autocast = torch.autocast("cpu", dtype=torch.bfloat16, enabled=precision == "bf16")
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor), autocast:
        loss = model(ids[:, :-1].contiguous(), ids[:, 1:].contiguous())
    loss.backward()
    return sum(n for n, _ in storages.values()), sum(n for n, _ in logits.values())


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--preset", choices=PRESETS, default="small")
    parser.add_argument("--quern", default=os.path.join(os.path.dirname(__file__), "../../build/release/quern"))
    args = parser.parse_args()
    sizes = PRESETS[args.preset]
    tokens = sizes[3] * sizes[5]
    for precision in ("fp32", "bf16"):
        kept, logits = saved_bytes(sizes, precision)
        command = [args.quern, "plan", "--preset", args.preset, "--precision", precision, "--threads", "1", "--json"]
        plan = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        ours = plan["bytes"]["activations_per_worker"] / (plan["micro_batch_sequences"] * sizes[3])
        print(f"{args.preset} {precision}: quern {ours:,.0f} bytes per token; PyTorch {torch.__version__} "
              f"{kept / tokens:,.0f}, and {logits / tokens:,.0f} for logits; ratio {ours * tokens / kept:.2f}")


if __name__ == "__main__":
    main()
