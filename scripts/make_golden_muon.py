#!/usr/bin/env python3
"""Creates tests/golden/muon_steps.json: four updates of torch.optim.Muon, in double precision.

Run by hand; neither the build nor the tests need PyTorch, since the tests read the committed file:
    python3 -m venv venv && venv/bin/pip install torch==2.13.0
    venv/bin/python scripts/make_golden_muon.py tests/golden/muon_steps.json

PyTorch orthogonalizes in bfloat16, which is good to two digits; here that conversion is switched off, so that the file
contains what its formula gives. Weights and gradients are closed formulas, as in make_golden.py.
"""

import json
import platform
import sys

import torch

from make_golden import units

SHAPES = [(12, 20), (20, 12), (16, 16), (1, 9)]  # (out, in)
OPTIONS = {"lr": 0.05, "weight_decay": 0.2, "momentum": 0.9}
STEPS = 4


def main():
    torch.Tensor.bfloat16 = lambda self: self.clone()
    matrices = []
    for i, (rows, columns) in enumerate(SHAPES):
        weight = torch.nn.Parameter(units(100 + i, rows * columns).reshape(rows, columns))
        optimizer = torch.optim.Muon([weight], **OPTIONS)
        for step in range(STEPS):
            weight.grad = units(200 + 10 * i + step, rows * columns).reshape(rows, columns)
            optimizer.step()
        matrices.append({"shape": [rows, columns], "weights": weight.detach().flatten().tolist()})
    versions = {"python": platform.python_version(), "torch": torch.__version__}
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        file.write(f'{{"versions": {json.dumps(versions)},\n "options": {json.dumps(OPTIONS)},\n "steps": {STEPS},\n')
        file.write(' "matrices": [\n  ' + ",\n  ".join(map(json.dumps, matrices)) + "]}\n")


if __name__ == "__main__":
    main()
