#!/usr/bin/env python3
"""Creates the golden files of ten training steps in PyTorch, in double precision: a small GPT-2, and the same with RMS
norm, rotary positions, QK-norm, squared ReLU, an output matrix of its own and a soft cap of its logits; a small Llama with
llama3 scaling of its rotary positions, and a small Qwen3.

Run by hand; neither the build nor the tests need PyTorch, since the tests read the committed file:
    python3 -m venv venv && venv/bin/pip install torch==2.13.0
    venv/bin/python scripts/make_golden.py gpt2 tests/golden/gpt_ten_steps.json
    venv/bin/python scripts/make_golden.py modern tests/golden/modern_ten_steps.json
    venv/bin/python scripts/make_golden.py llama tests/golden/llama_ten_steps.json
    venv/bin/python scripts/make_golden.py qwen3 tests/golden/qwen3_ten_steps.json

The committed files were created with Python 3.11.7 and torch 2.13.0+cpu, which they record. Weights, tokens and probes are
closed formulas, so that tests/train/golden_test.cc can compute them without a file. For every tensor a file contains
the norm and the product with a probe, a fixed vector of values in [-1, 1): a norm alone does not detect a transposed or
permuted tensor.
"""

import json
import math
import platform
import sys

import torch
import torch.nn.functional as F

# Odd sizes; fewer positions than the context, so that rows of the position table have no gradient and only decay.
MODELS = {"gpt2": {"layers": 2, "heads": 3, "width": 33, "context": 17, "vocabulary": 61},
          "modern": {"layers": 2, "heads": 3, "width": 30, "context": 17, "vocabulary": 61, "norm": "rmsnorm",
                     "positions": "rotary", "activation": "relu2", "qk_norm": True, "tied_output": False,
                     "logit_cap": 4.0},
          "llama": {"layers": 2, "heads": 6, "width": 33, "context": 17, "vocabulary": 61, "family": "llama",
                    "kv_heads": 2, "head_dim": 10, "inner_width": 37, "tied_output": False, "rope_base": 1000.0,
                    "rope_factor": 8.0, "rope_original_context": 40},
          "qwen3": {"layers": 2, "heads": 3, "width": 30, "context": 17, "vocabulary": 61, "family": "qwen3",
                    "kv_heads": 1, "head_dim": 12, "inner_width": 45, "rope_base": 10000.0}}
MODEL = MODELS["gpt2"]
BATCH = {"sequences": 4, "T": 15}
# Both sides of the clip and every part of the schedule occur in the ten steps. Epsilon is larger than usual for two
# reasons: its position in the formula matters, and the gradient of the key biases, which is zero because softmax is
# invariant to them, has no effect when it is rounding noise of 1e-9 (with 1e-5, float32 was off by 3e-6 in these biases
# alone).
OPTIMIZER = {"beta1": 0.9, "beta2": 0.95, "epsilon": 1e-4, "weight_decay": 0.1, "clip": 1.75}
SCHEDULE = {"rate": 1e-2, "min_rate": 1e-3, "warmup": 3, "steps": 10}
NORM_EPSILON = 1e-5


def units(stream, count):
    """Values in [-1, 1), a hash of the stream and the index: 32-bit integers, so the same in any language."""
    values = []
    for i in range(count):
        h = (stream * 0x9E3779B9 + i * 0x85EBCA6B) & 0xFFFFFFFF
        h ^= h >> 16
        h = h * 0x7FEB352D & 0xFFFFFFFF
        h ^= h >> 15
        h = h * 0x846CA68B & 0xFFFFFFFF
        h ^= h >> 16
        values.append(h / 2**31 - 1)
    return torch.tensor(values, dtype=torch.float64)


def modern():
    return "norm" in MODEL


def llama():
    return "family" in MODEL


def llama_shapes():
    """Linear weights are (out, in)."""
    C, D, inner = MODEL["width"], MODEL["head_dim"], MODEL["inner_width"]
    queries, keys = MODEL["heads"] * D, MODEL["kv_heads"] * D
    yield "model.embed_tokens.weight", (MODEL["vocabulary"], C)
    for layer in range(MODEL["layers"]):
        names = [("input_layernorm", (C,)), ("self_attn.q_proj", (queries, C)), ("self_attn.k_proj", (keys, C)),
                 ("self_attn.v_proj", (keys, C)), ("self_attn.o_proj", (C, queries))]
        if MODEL["family"] == "qwen3":
            names += [("self_attn.q_norm", (D,)), ("self_attn.k_norm", (D,))]
        names += [("post_attention_layernorm", (C,)), ("mlp.gate_proj", (inner, C)), ("mlp.up_proj", (inner, C)),
                  ("mlp.down_proj", (C, inner))]
        for name, shape in names:
            yield f"model.layers.{layer}.{name}.weight", shape
    yield "model.norm.weight", (C,)
    if not MODEL.get("tied_output", True):
        yield "lm_head.weight", (MODEL["vocabulary"], C)


def shapes():
    """Hugging Face names and layouts, in Quern's order; linear weights of GPT-2 are (in, out)."""
    if llama():
        yield from llama_shapes()
        return
    C = MODEL["width"]
    yield "wte.weight", (MODEL["vocabulary"], C)
    if not modern():
        yield "wpe.weight", (MODEL["context"], C)
    for layer in range(MODEL["layers"]):
        for name, inner in [("ln_1", None), ("attn.c_attn", (C, 3 * C)), ("attn.c_proj", (C, C)),
                            ("ln_2", None), ("mlp.c_fc", (C, 4 * C)), ("mlp.c_proj", (4 * C, C))]:
            if modern() and inner is None:
                continue
            yield f"h.{layer}.{name}.weight", inner or (C,)
            yield f"h.{layer}.{name}.bias", (inner[1] if inner else C,)
    if modern():
        yield "lm_head.weight", (MODEL["vocabulary"], C)
    else:
        yield "ln_f.weight", (C,)
        yield "ln_f.bias", (C,)


def initial_weights():
    """Rounded to float, as stored by Quern, before either precision uses them."""
    weights = {}
    for stream, (name, shape) in enumerate(shapes()):
        unit = units(stream, math.prod(shape)).reshape(shape)
        value = 0.2 * unit if len(shape) > 1 else 0.1 * unit + (1.0 if name.endswith("weight") else 0.0)
        weights[name] = value.float()
    return weights


def tokens(step):
    """(sequences, T + 1) ids of a step, counted from 1. Two alternating batches, so that the loss falls."""
    def token(s, t):
        return (7 * t * t + 11 * s + 5 * (step % 2)) % MODEL["vocabulary"]
    return torch.tensor([[token(s, t) for t in range(BATCH["T"] + 1)] for s in range(BATCH["sequences"])])


def linear(p, name, x):
    return x @ p[name + ".weight"] + p[name + ".bias"]


def norm(p, name, x):
    if modern():
        return F.rms_norm(x, x.shape[-1:], eps=NORM_EPSILON)
    return F.layer_norm(x, x.shape[-1:], p[name + ".weight"], p[name + ".bias"], NORM_EPSILON)


def frequencies(d):
    """Radians per position of each pair, with llama3 scaling if the model has a factor (low 1, high 4 periods)."""
    plain = MODEL.get("rope_base", 10000.0) ** (-torch.arange(0, d, 2, dtype=torch.float64) / d)
    if "rope_factor" not in MODEL:
        return plain
    share = ((MODEL["rope_original_context"] * plain / (2 * math.pi) - 1) / (4 - 1)).clamp(0, 1)
    return plain * ((1 - share) / MODEL["rope_factor"] + share)


def rotated(x):
    """x (..., T, d): pairs j and j + d / 2 by position * frequency."""
    T, d = x.shape[-2:]
    angles = torch.arange(T, dtype=torch.float64)[:, None] * frequencies(d)
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    a, b = x[..., :d // 2], x[..., d // 2:]
    return torch.cat([a * cos - b * sin, b * cos + a * sin], dim=-1)


def attention(qkv):
    B, T, _ = qkv.shape
    q, k, v = (part.reshape(B, T, MODEL["heads"], -1).transpose(1, 2) for part in qkv.chunk(3, dim=-1))
    if modern():
        q, k = rotated(norm(None, None, q)), rotated(norm(None, None, k))
    return attend(q, k, v)


def attend(q, k, v):
    B, _, T, _ = q.shape
    scores = q @ k.transpose(2, 3) / math.sqrt(q.shape[-1])
    future = torch.ones(T, T, dtype=torch.bool).triu(1)
    out = scores.masked_fill(future, -math.inf).softmax(dim=-1) @ v
    return out.transpose(1, 2).reshape(B, T, -1)


def llama_norm(p, name, x):
    return F.rms_norm(x, x.shape[-1:], p[name + ".weight"], eps=NORM_EPSILON)


def llama_attention(p, name, x):
    def heads(part):
        value = F.linear(x, p[f"{name}.{part}_proj.weight"]).unflatten(-1, (-1, MODEL["head_dim"])).transpose(1, 2)
        return llama_norm(p, f"{name}.{part}_norm", value) if f"{name}.{part}_norm.weight" in p else value
    q, k, v = rotated(heads("q")), rotated(heads("k")), heads("v")
    group = MODEL["heads"] // MODEL["kv_heads"]
    out = attend(q, k.repeat_interleave(group, dim=1), v.repeat_interleave(group, dim=1))
    return F.linear(out, p[name + ".o_proj.weight"])


def llama_logits(p, inputs):
    x = p["model.embed_tokens.weight"][inputs]
    for layer in range(MODEL["layers"]):
        h = f"model.layers.{layer}."
        x = x + llama_attention(p, h + "self_attn", llama_norm(p, h + "input_layernorm", x))
        n = llama_norm(p, h + "post_attention_layernorm", x)
        wide = F.silu(F.linear(n, p[h + "mlp.gate_proj.weight"])) * F.linear(n, p[h + "mlp.up_proj.weight"])
        x = x + F.linear(wide, p[h + "mlp.down_proj.weight"])
    return F.linear(llama_norm(p, "model.norm", x), p.get("lm_head.weight", p["model.embed_tokens.weight"]))


def loss(p, ids):
    inputs, targets = ids[:, :-1], ids[:, 1:]
    if llama():
        return F.cross_entropy(llama_logits(p, inputs).flatten(0, 1), targets.flatten())
    x = p["wte.weight"][inputs]
    if not modern():
        x = x + p["wpe.weight"][:inputs.shape[1]]
    for layer in range(MODEL["layers"]):
        h = f"h.{layer}."
        x = x + linear(p, h + "attn.c_proj", attention(linear(p, h + "attn.c_attn", norm(p, h + "ln_1", x))))
        wide = linear(p, h + "mlp.c_fc", norm(p, h + "ln_2", x))
        wide = F.relu(wide).square() if modern() else F.gelu(wide, approximate="tanh")
        x = x + linear(p, h + "mlp.c_proj", wide)
    logits = norm(p, "ln_f", x) @ p["lm_head.weight" if modern() else "wte.weight"].T
    if modern():
        logits = MODEL["logit_cap"] * torch.tanh(logits / MODEL["logit_cap"])
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def rate(step):
    s = SCHEDULE
    if step <= s["warmup"]:
        return s["rate"] * step / s["warmup"]
    done = (step - s["warmup"]) / (s["steps"] - s["warmup"])
    return s["min_rate"] + (s["rate"] - s["min_rate"]) * 0.5 * (1 + math.cos(math.pi * done))


def measures(tensors):
    """[norm, product with the probe] per tensor; the probes' streams follow those of the weights."""
    first = len(tensors)
    return {name: [value.double().norm().item(), (value.double().flatten() @ units(first + i, value.numel())).item()]
            for i, (name, value) in enumerate(tensors.items())}


def train(dtype):
    p = {name: value.to(dtype).requires_grad_() for name, value in initial_weights().items()}
    groups = [{"params": [v for v in p.values() if v.dim() > 1], "weight_decay": OPTIMIZER["weight_decay"]},
              {"params": [v for v in p.values() if v.dim() == 1], "weight_decay": 0.0}]
    adamw = torch.optim.AdamW(groups, betas=(OPTIMIZER["beta1"], OPTIMIZER["beta2"]), eps=OPTIMIZER["epsilon"])
    result = {"losses": [], "gradient_norms": [], "gradients": {}}
    for step in range(1, SCHEDULE["steps"] + 1):
        adamw.zero_grad()
        value = loss(p, tokens(step))
        value.backward()
        total = math.sqrt(sum(v.grad.double().square().sum().item() for v in p.values()))
        result["losses"].append(value.item())
        result["gradient_norms"].append(total)
        if step in (1, SCHEDULE["steps"]):
            result["gradients"][str(step)] = measures({name: v.grad for name, v in p.items()})
        # Not torch's clip_grad_norm_, which divides by the norm plus 1e-6.
        for v in p.values():
            v.grad *= min(1.0, OPTIMIZER["clip"] / total)
        for group in adamw.param_groups:
            group["lr"] = rate(step)
        adamw.step()
    result["weights"] = measures({name: v.detach() for name, v in p.items()})
    return result


def largest_errors(exact, rounded):
    """The error of float32 in PyTorch: relative to the value; for a probe, to the norm of its tensor."""
    def relative(key):
        return max(abs(a / b - 1) for a, b in zip(rounded[key], exact[key]))

    def tensors(a, b):
        return max(max(abs(a[n][0] - b[n][0]), abs(a[n][1] - b[n][1])) / b[n][0] for n in b)
    gradients = {step: tensors(rounded["gradients"][step], exact["gradients"][step]) for step in exact["gradients"]}
    return {"losses": relative("losses"), "gradient_norms": relative("gradient_norms"), "gradients": gradients,
            "weights": tensors(rounded["weights"], exact["weights"])}


def main():
    global MODEL
    if len(sys.argv) != 3 or sys.argv[1] not in MODELS:
        sys.exit(__doc__)
    MODEL = MODELS[sys.argv[1]]
    torch.set_num_threads(1)
    exact, rounded = train(torch.float64), train(torch.float32)
    clipped = [n > OPTIMIZER["clip"] for n in exact["gradient_norms"]]
    assert any(clipped) and not all(clipped), exact["gradient_norms"]
    result = {"made_by": "scripts/make_golden.py", "torch": torch.__version__, "python": platform.python_version(),
              "float32_errors_of_torch": largest_errors(exact, rounded),
              "model": MODEL, "batch": BATCH, "optimizer": OPTIMIZER, "schedule": SCHEDULE, **exact}
    with open(sys.argv[2], "w") as file:
        json.dump(result, file, indent=1)
        file.write("\n")
    print("losses", exact["losses"], "\nnorms", exact["gradient_norms"], "\nfloat32", result["float32_errors_of_torch"])


if __name__ == "__main__":
    main()
