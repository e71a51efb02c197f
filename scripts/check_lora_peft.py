#!/usr/bin/env python3
"""Compares LoRA fine-tuning, and the adapters that it writes and reads, with Hugging Face PEFT.

Run by hand; neither the build nor the tests need PyTorch:
    cmake --build --preset release --target quern_program quern_python
    python3 -m venv venv && venv/bin/pip install torch==2.13.0 transformers peft safetensors tokenizers gguf jinja2 numpy
    venv/bin/python scripts/check_lora_peft.py [--filter NAME] [--parts training,exports,import] [--keep DIR]
    venv/bin/python scripts/check_lora_peft.py --self-test

Small random models of every family with a byte-level tokenizer, and random conversations. For each model and kind of
adapter:
  masks     every document of a batch is a conversation as transformers renders it, and exactly the answers count
  adapter   the initial adapter has the names, shapes, configuration and range of one that PEFT makes itself
  losses    20 steps of PEFT in fp32 from the checkpoint of step 0, on the same batches, with the same learning rates
  weights   the adapters after these steps; the difference is relative to the norm of the tensor
  logits    of the run, against PEFT with the exported adapter, and transformers with the merged export
  gguf      the tensors of the GGUF adapter are those of the PEFT adapter, in the order of llama.cpp
  import    an adapter with random weights that PEFT wrote, as a run

--self-test needs no Quern: it trains on batches of its own in fp32 and fp64, which must agree within the same bounds,
and compares packed with separate conversations. Quern's logits come from the Python that the package was built for,
QUERN_PYTHON or /usr/bin/python3. Exits with 1 if anything differs.
"""

import argparse
import dataclasses
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import warnings

ROOT = pathlib.Path(__file__).resolve().parent.parent
STEPS, ROWS, CONTEXT, VOCABULARY = 20, 3, 256, 258
LOSS_BOUND, WEIGHT_BOUND, LOGIT_BOUND = 1e-5, 1e-4, 2e-4  # relative, relative to the norm, absolute
BETAS, RATE = (0.9, 0.95), 2e-3
CLIP = 0.6  # the gradients of these models have norms of 0.4 to 1.3, so some steps are clipped and some are not
# AdamW divides by sqrt(v) + epsilon. With the usual 1e-8, an element whose gradient is almost 0 moves by a whole step in
# the direction of its rounding error: PyTorch in fp32 and in fp64 then differ by up to 4e-4 of a tensor's norm.
EPSILON = 1e-6

CHAT_TEMPLATE = ("{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>\n' }}"
                 "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}")


def logits_of_quern(run, tokens, out):
    """Runs in Quern's Python."""
    import numpy
    import quern
    numpy.save(out, quern.load(run).logits(numpy.load(tokens)))


if sys.argv[1:2] == ["--quern-logits"]:
    logits_of_quern(*sys.argv[2:])
    sys.exit(0)

try:
    import gguf
    import numpy
    import peft
    import tokenizers
    import torch
    import transformers
    from safetensors.torch import load_file
except ImportError as error:
    sys.exit(f"check_lora_peft: {error}; pip install torch==2.13.0 transformers peft safetensors tokenizers gguf jinja2 numpy")


@dataclasses.dataclass
class Variant:
    """A kind of adapter. No targets: all linear layers except the output."""
    name: str
    rank: int = 4
    alpha: float = 8
    rslora: bool = False
    targets: tuple = ()

    def scale(self):
        return self.alpha / (self.rank ** 0.5 if self.rslora else self.rank)

    def peft_config(self, model_type):
        return peft.LoraConfig(r=self.rank, lora_alpha=self.alpha, use_rslora=self.rslora, lora_dropout=0.0,
                               target_modules=list(self.targets) or "all-linear", task_type="CAUSAL_LM",
                               fan_in_fan_out=model_type == "gpt2")


class Quern:
    """Every use of Quern in this script."""

    def __init__(self, build):
        self.build = pathlib.Path(build)

    def run(self, *arguments):
        words = [str(self.build / "quern"), *map(str, arguments)]
        done = subprocess.run(words, text=True, capture_output=True)
        if done.returncode != 0:
            sys.exit(f"check_lora_peft: {' '.join(words)}: {done.stderr}")
        return done.stdout

    def import_model(self, folder, run):
        self.run("import", folder, "--run", run)

    def import_adapter(self, folder, base, run):
        self.run("import", folder, "--base", base, "--run", run)

    def finetune(self, base, data, run, variant, steps):
        options = ["--rank", variant.rank, "--alpha", variant.alpha, "--batch", ROWS, "--context", CONTEXT, "--rate", RATE]
        if variant.targets:
            options += ["--targets", json.dumps(variant.targets)]
        settings = {"lora.rslora": json.dumps(variant.rslora), "log.interval": 1, "optimizer.warmup": 5,
                    "optimizer.beta1": BETAS[0], "optimizer.beta2": BETAS[1], "optimizer.epsilon": EPSILON,
                    "optimizer.weight_decay": 0, "optimizer.clip": CLIP}
        for name, value in settings.items():
            options += ["--set", f"{name}={value}"]
        self.run("finetune", "--base", base, data, "--run", run, "--steps", steps, *options)

    def checkpoint(self, run, step):
        """A folder that PEFT can open."""
        return pathlib.Path(run) / f"checkpoints/step-{step:08}"

    def export(self, run, kind, out, *options):
        self.run("export", "--run", run, *options, "--to", kind, out)

    def batches(self, run, steps):
        """Of each step, its rows: dicts of tokens, targets (-1: not counted) and positions."""
        lines = self.run("data", "batches", "--run", run, "--steps", steps).splitlines()
        return [json.loads(line)["rows"] for line in lines]

    def metrics(self, run):
        """Loss and learning rate of each step."""
        lines = [json.loads(line) for line in (pathlib.Path(run) / "metrics.jsonl").read_text().splitlines()]
        return [(line["loss"], line["rate"]) for line in lines if "loss" in line]

    def logits(self, run, tokens, work):
        numpy.save(work / "tokens.npy", tokens)
        python = os.environ.get("QUERN_PYTHON", "/usr/bin/python3")
        subprocess.run([python, "-W", "ignore", __file__, "--quern-logits", run, work / "tokens.npy", work / "logits.npy"],
                       check=True, env={**os.environ, "PYTHONPATH": str(self.build / "python")})
        return numpy.load(work / "logits.npy")


# Models and data


def models():
    """Name and configuration of each model."""
    T = transformers
    sizes = {"vocab_size": VOCABULARY, "hidden_size": 48, "intermediate_size": 88, "num_hidden_layers": 3,
             "num_attention_heads": 6, "num_key_value_heads": 2, "max_position_embeddings": CONTEXT,
             "bos_token_id": 256, "eos_token_id": 257}
    yield "llama tied", T.LlamaConfig(**sizes, tie_word_embeddings=True)
    yield "qwen2", T.Qwen2Config(**sizes, tie_word_embeddings=False)
    yield "qwen3", T.Qwen3Config(**sizes, head_dim=20, tie_word_embeddings=False)
    yield "gpt2", T.GPT2Config(vocab_size=VOCABULARY, n_positions=CONTEXT, n_embd=48, n_layer=3, n_head=4, resid_pdrop=0,
                               embd_pdrop=0, attn_pdrop=0, bos_token_id=256, eos_token_id=257)


def variants(model_type):
    attention = ("c_attn",) if model_type == "gpt2" else ("q_proj", "v_proj")
    yield Variant("all linears")
    yield Variant("attention only", rank=3, alpha=3, targets=attention)
    yield Variant("rslora", rank=6, alpha=4, rslora=True)


def save_model(config, folder):
    """A model with random weights, large enough that every gradient is, and a tokenizer of bytes."""
    torch.manual_seed(7)
    model = transformers.AutoModelForCausalLM.from_config(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
    model.save_pretrained(folder)
    letters = tokenizers.pre_tokenizers.ByteLevel.alphabet()
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE({letter: i for i, letter in enumerate(sorted(letters))}, []))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    tokenizer.add_special_tokens(["<|im_start|>", "<|im_end|>"])
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<|im_start|>", eos_token="<|im_end|>")
    fast.chat_template = CHAT_TEMPLATE
    fast.save_pretrained(folder)


def conversations(count, seed=3):
    """Of one to three exchanges, some with a system message, some with an answer that must not be trained on."""
    source = random.Random(seed)
    letters = "abcdefghijklmnopqrstuvwxyz    ,.?!0123456789\u00e9\u00df\u6f22"

    def text(least, most):
        return "".join(source.choice(letters) for _ in range(source.randint(least, most))).strip() or "x"

    for _ in range(count):
        messages = [{"role": "system", "content": text(3, 12)}] if source.random() < 0.3 else []
        exchanges = source.choice((1, 1, 2, 3))
        for exchange in range(exchanges):
            messages.append({"role": "user", "content": text(2, 20)})
            messages.append({"role": "assistant", "content": text(1, 25)})
            if exchange + 1 < exchanges and source.random() < 0.3:
                messages[-1]["train"] = False
        yield messages


def rendered(tokenizer, messages):
    """Token ids of a conversation, and for each whether it is trained on; None for what follows an end of turn."""
    def ids_of(count, prompt):
        text = tokenizer.apply_chat_template(messages[:count], tokenize=False, add_generation_prompt=prompt)
        return tokenizer.encode(text, add_special_tokens=False)

    ids = ids_of(len(messages), False)
    trained = [False] * len(ids)
    for i, message in enumerate(messages):
        if message["role"] == "assistant" and message.get("train", True):
            begin, end = len(ids_of(i, True)), len(ids_of(i + 1, False))
            stop = ids.index(tokenizer.eos_token_id, begin)
            trained[begin:end] = [True] * (stop + 1 - begin) + [None] * (end - stop - 1)
    return ids, trained


def documents(row):
    """The documents of a row, as pairs of tokens and targets."""
    starts = [i for i, position in enumerate(row["positions"]) if position == 0] + [len(row["tokens"])]
    for begin, end in zip(starts, starts[1:]):
        yield row["tokens"][begin:end], row["targets"][begin:end]


def is_conversation(tokens, targets, ids, trained):
    """Whether a document is this conversation. Its end may lack what no counted target needs."""
    if tokens != ids[:len(tokens)] or any(trained[len(tokens) + 1:]):
        return False
    following = list(zip(ids[1:], trained[1:]))
    if len(tokens) > len(following):
        following.append((-1, False))
    return all(target == (-1 if not counts else token) or (counts is None and target == token)
               for target, (token, counts) in zip(targets, following))


def masks_differ(batches, tokenizer, data):
    """The first document that is none of the conversations, if any."""
    expected = [rendered(tokenizer, messages) for messages in data]
    for rows in batches:
        for row in rows:
            for tokens, targets in documents(row):
                if any(target != -1 for target in targets) and \
                        not any(is_conversation(tokens, targets, *one) for one in expected):
                    return f"no conversation: {tokenizer.decode(tokens)!r}, targets {targets}"
    return None


# PEFT


def padded(rows):
    """Tensors of a step: tokens, targets, positions, and the mask that is added to the scores of attention. Padding is
    made of documents of one token."""
    length = max(len(row["tokens"]) for row in rows)

    def column(name, filler):
        return torch.tensor([row[name] + [filler] * (length - len(row[name])) for row in rows])

    tokens, targets, positions = column("tokens", 0), column("targets", -1), column("positions", 0)
    document = (positions == 0).cumsum(dim=1)
    same = document[:, :, None] == document[:, None, :]
    visible = same & torch.ones(length, length, dtype=torch.bool).tril()
    return tokens, targets, positions, visible[:, None]


def mean_loss(model, rows):
    tokens, targets, positions, visible = padded(rows)
    dtype = next(model.parameters()).dtype
    mask = torch.zeros(visible.shape, dtype=dtype).masked_fill(~visible, torch.finfo(dtype).min)
    logits = model(input_ids=tokens, position_ids=positions, attention_mask=mask, use_cache=False).logits
    total = torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=-1, reduction="sum")
    return total / (targets != -1).sum()


def base_model(folder, dtype=torch.float32):
    return transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=dtype, attn_implementation="eager").eval()


def with_adapter(folder, adapter, dtype=torch.float32, trainable=False):
    return peft.PeftModel.from_pretrained(base_model(folder, dtype), adapter, is_trainable=trainable,
                                          autocast_adapter_dtype=False).to(dtype)


def adapter_of(model):
    return {name: tensor.detach().float() for name, tensor in peft.get_peft_model_state_dict(model).items()}


def train(model, batches, rates):
    """The loss of each step. Clips as Quern does: a gradient of norm n > CLIP is multiplied by CLIP / n."""
    parameters = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(parameters, lr=1.0, betas=BETAS, eps=EPSILON, weight_decay=0.0)
    losses = []
    for rows, rate in zip(batches, rates):
        for group in optimizer.param_groups:
            group["lr"] = rate
        optimizer.zero_grad()
        loss = mean_loss(model, rows)
        loss.backward()
        norm = torch.sqrt(sum(p.grad.double().square().sum() for p in parameters)).item()
        if norm > CLIP:
            for p in parameters:
                p.grad.mul_(CLIP / norm)
        optimizer.step()
        losses.append(loss.item())
    return losses


# Comparisons


class Report:
    def __init__(self):
        self.good = True

    def line(self, good, text):
        self.good &= bool(good)
        print("ok  " if good else "FAIL", text, flush=True)


def largest_loss_difference(ours, theirs):
    if len(ours) != len(theirs):
        return float("inf")
    return max(abs(a / b - 1) for a, b in zip(ours, theirs))


def largest_weight_difference(ours, theirs):
    """The name of the tensor that differs most, and by how much, relative to its norm."""
    if ours.keys() != theirs.keys():
        return f"names differ: {sorted(ours.keys() ^ theirs.keys())[:4]}", float("inf")
    return max(((name, ((ours[name] - theirs[name]).norm() / theirs[name].norm()).item()) for name in theirs),
               key=lambda pair: pair[1])


def initial_adapter_differs(adapter, folder, variant):
    """Compares with an adapter that PEFT makes: names, shapes, configuration, and the range of the values."""
    model = base_model(folder)
    model_type = model.config.model_type
    made = peft.get_peft_model(model, variant.peft_config(model_type))
    ours, theirs = load_file(adapter / "adapter_model.safetensors"), adapter_of(made)
    if {n: t.shape for n, t in ours.items()} != {n: t.shape for n, t in theirs.items()}:
        return f"names or shapes: {sorted(ours.keys() ^ theirs.keys())[:4]}"
    config, expected = json.loads((adapter / "adapter_config.json").read_text()), made.peft_config["default"]
    for field in ("r", "lora_alpha", "use_rslora", "lora_dropout", "fan_in_fan_out", "bias"):
        if config.get(field) != getattr(expected, field):
            return f"{field}: expected {getattr(expected, field)!r}, found {config.get(field)!r}"
    for name, tensor in ours.items():
        largest, limit = tensor.abs().max().item(), tensor.shape[1] ** -0.5
        if ".lora_B." in name and largest != 0:
            return f"{name}: not zero"
        if ".lora_A." in name and not 0.8 * limit < largest <= limit:
            return f"{name}: expected values up to {limit:.4f}, found {largest:.4f}"
    return None


GGUF_NAMES = {"attn.c_attn": "attn_qkv", "attn.c_proj": "attn_output", "mlp.c_fc": "ffn_up", "mlp.c_proj": "ffn_down",
              "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
              "self_attn.o_proj": "attn_output", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up",
              "mlp.down_proj": "ffn_down"}


def gguf_adapter_differs(file, adapter, config, variant):
    """Compares a GGUF adapter with a PEFT adapter, tensor by tensor. llama.cpp has no rslora: its scale is alpha / rank, so
    alpha must make up for it."""
    reader = gguf.GGUFReader(file)
    keys = {name: field.contents() for name, field in reader.fields.items()}
    expected = {"general.type": "adapter", "adapter.type": "lora", "general.architecture": config.model_type}
    for key, value in expected.items():
        if keys.get(key) != value:
            return f"{key}: expected {value!r}, found {keys.get(key)!r}"
    alpha = variant.scale() * variant.rank
    if abs(keys.get("adapter.lora.alpha", 0) - alpha) > 1e-6 * alpha:
        return f"adapter.lora.alpha: expected {alpha}, found {keys.get('adapter.lora.alpha')}"
    found = {t.name: numpy.array(t.data).reshape([int(n) for n in reversed(t.shape)]) for t in reader.tensors}
    for name, tensor in adapter.items():
        parts = name.removeprefix("base_model.model.").split(".")
        layer, module, half = parts[2], ".".join(parts[3:5]), parts[5]
        wanted = tensor.numpy()
        if config.model_type == "llama" and half == "lora_B" and module.endswith(("q_proj", "k_proj")):
            heads = config.num_attention_heads if module.endswith("q_proj") else config.num_key_value_heads
            wanted = wanted.reshape(heads, 2, -1, wanted.shape[1]).swapaxes(1, 2).reshape(wanted.shape)
        key = f"blk.{layer}.{GGUF_NAMES[module]}.weight.{half.lower()}"
        if key not in found or not numpy.array_equal(found.pop(key), wanted):
            return f"{key} is missing or differs from {name}"
    return f"too many tensors: {sorted(found)[:4]}" if found else None


@torch.no_grad()
def logit_difference(found, model, tokens):
    return (torch.from_numpy(numpy.asarray(found)) - model(torch.from_numpy(tokens)).logits).abs().max().item()


def check_training(report, quern, title, variant, work):
    folder, run = work / "hf", work / f"run-{variant.name}"
    initial, final = quern.checkpoint(run, 0), quern.checkpoint(run, STEPS)
    batches, metrics = quern.batches(run, STEPS), quern.metrics(run)

    problem = masks_differ(batches, transformers.AutoTokenizer.from_pretrained(folder), list(conversations(60)))
    packed = max(row["positions"].count(0) for rows in batches for row in rows)
    report.line(problem is None, f"{title} masks; {packed} documents in a row at most {problem or ''}")
    problem = initial_adapter_differs(initial, folder, variant)
    report.line(problem is None, f"{title} initial adapter {problem or 'as PEFT makes it'}")

    model = with_adapter(folder, initial, trainable=True)
    losses = train(model, batches, [rate for _, rate in metrics])
    difference = largest_loss_difference([loss for loss, _ in metrics], losses)
    report.line(difference <= LOSS_BOUND, f"{title} losses from {losses[0]:.4f} to {losses[-1]:.4f}, off by {difference:.1e}")
    tensor, difference = largest_weight_difference(load_file(final / "adapter_model.safetensors"), adapter_of(model))
    report.line(difference <= WEIGHT_BOUND, f"{title} weights off by {difference:.1e} ({tensor})")


def check_exports(report, quern, title, config, variant, work):
    folder, run = work / "hf", work / f"run-{variant.name}"
    adapter, merged, file = work / f"adapter-{variant.name}", work / f"merged-{variant.name}", work / f"{variant.name}.gguf"
    quern.export(run, "peft", adapter)
    quern.export(run, "hf", merged, "--merge")
    quern.export(run, "gguf-lora", file)
    ours = load_file(adapter / "adapter_model.safetensors")
    trained = load_file(quern.checkpoint(run, STEPS) / "adapter_model.safetensors")
    same = ours.keys() == trained.keys() and all(torch.equal(ours[name], trained[name]) for name in trained)
    report.line(same, f"{title} the exported adapter has the tensors of the checkpoint")
    tokens = numpy.random.default_rng(1).integers(0, VOCABULARY, (3, 40))
    logits = quern.logits(run, tokens, work)
    for what, loaded in (("exported adapter", with_adapter(folder, adapter)), ("merged export", base_model(merged))):
        difference = logit_difference(logits, loaded, tokens)
        report.line(difference <= LOGIT_BOUND, f"{title} logits with the {what} off by {difference:.1e}")
    problem = gguf_adapter_differs(file, ours, config, variant)
    report.line(problem is None, f"{title} GGUF adapter {problem or 'has the same tensors'}")


def random_adapter(folder, variant, out):
    """An adapter that PEFT writes, with random A and B."""
    torch.manual_seed(11)
    model = base_model(folder)
    made = peft.get_peft_model(model, variant.peft_config(model.config.model_type)).eval()
    with torch.no_grad():
        for parameter in made.parameters():
            if parameter.requires_grad:
                parameter.copy_(torch.randn_like(parameter) * 0.1)
    made.save_pretrained(out)
    return made


def check_import(report, quern, title, variant, work):
    model = random_adapter(work / "hf", variant, work / f"made-{variant.name}")
    quern.import_adapter(work / f"made-{variant.name}", work / "base", work / f"imported-{variant.name}")
    tokens = numpy.random.default_rng(2).integers(0, VOCABULARY, (3, 40))
    difference = logit_difference(quern.logits(work / f"imported-{variant.name}", tokens, work), model, tokens)
    changed = logit_difference(quern.logits(work / "base", tokens, work), model, tokens)
    report.line(difference <= LOGIT_BOUND < changed,
                f"{title} adapter of PEFT, logits off by {difference:.1e} (without it {changed:.1e})")


def check(report, quern, name, config, work, parts):
    save_model(config, work / "hf")
    with open(work / "data.jsonl", "w") as file:
        for messages in conversations(60):
            print(json.dumps({"messages": messages}), file=file)
    quern.import_model(work / "hf", work / "base")
    for variant in variants(config.model_type):
        title = f"{name}, {variant.name}:"
        if "training" in parts or "exports" in parts:
            quern.finetune(work / "base", work / "data.jsonl", work / f"run-{variant.name}", variant, STEPS)
        if "training" in parts:
            check_training(report, quern, title, variant, work)
        if "exports" in parts:
            check_exports(report, quern, title, config, variant, work)
        if "import" in parts:
            check_import(report, quern, title, variant, work)


# Without Quern


def stub_batches(tokenizer, data):
    """Conversations in their order, as many in each row as fit."""
    rows, row = [], {"tokens": [], "targets": [], "positions": []}
    for messages in data:
        ids, trained = rendered(tokenizer, messages)
        if len(row["tokens"]) + len(ids) - 1 > CONTEXT:
            rows.append(row)
            row = {"tokens": [], "targets": [], "positions": []}
        row["tokens"] += ids[:-1]
        row["targets"] += [token if counts else -1 for token, counts in zip(ids[1:], trained[1:])]
        row["positions"] += range(len(ids) - 1)
    rows.append(row)
    return [[rows[(step * ROWS + i) % len(rows)] for i in range(ROWS)] for step in range(STEPS)]


def alone(rows):
    """The same documents, one in each row."""
    return [{"tokens": tokens, "targets": targets, "positions": list(range(len(tokens)))}
            for row in rows for tokens, targets in documents(row)]


def as_one_document(rows):
    """The same rows, with documents that see each other."""
    return [{**row, "positions": list(range(len(row["tokens"])))} for row in rows]


def test_itself(report, name, config, work):
    folder = work / "hf"
    save_model(config, folder)
    data = list(conversations(60))
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    batches = stub_batches(tokenizer, data)
    assert masks_differ(batches, tokenizer, data) is None
    wrong = [[{**row, "targets": [-1] + row["targets"][:-1]} for row in rows] for rows in batches]
    assert masks_differ(wrong, tokenizer, data) is not None

    rates = [RATE * min(1, (step + 1) / 5) for step in range(STEPS)]
    for variant in variants(config.model_type):
        title, initial = f"{name}, {variant.name}:", work / f"initial-{variant.name}"
        torch.manual_seed(5)
        peft.get_peft_model(base_model(folder), variant.peft_config(config.model_type)).save_pretrained(initial)
        problem = initial_adapter_differs(initial, folder, variant)
        trained, losses = {}, {}
        for dtype in (torch.float32, torch.float64):
            trained[dtype] = with_adapter(folder, initial, dtype, trainable=True)
            losses[dtype] = train(trained[dtype], batches, rates)
        off = largest_loss_difference(*losses.values())
        tensor, weights = largest_weight_difference(*map(adapter_of, trained.values()))
        exact = trained[torch.float64]
        with torch.no_grad():
            separate, packed, unmasked = ([mean_loss(exact, change(rows)).item() for rows in batches[:4]]
                                          for change in (alone, list, as_one_document))
        begin, end = losses[torch.float64][0], losses[torch.float64][-1]
        report.line(problem is None and off <= LOSS_BOUND and weights <= WEIGHT_BOUND and end < begin,
                    f"{title} fp32 and fp64: losses {begin:.4f} to {end:.4f}, off by {off:.1e}; weights off by {weights:.1e} "
                    f"({tensor}) {problem or ''}")
        packing, leaking = largest_loss_difference(packed, separate), largest_loss_difference(unmasked, separate)
        report.line(packing < 1e-12 and leaking > 10 * LOSS_BOUND,
                    f"{title} packed and separate losses off by {packing:.1e}; if documents saw each other, by {leaking:.1e}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=ROOT / "build/release", help="where Quern was built")
    parser.add_argument("--filter", default="", help="only models whose name contains this")
    parser.add_argument("--parts", default="training,exports,import", help="which of these to check (default: all)")
    parser.add_argument("--keep", type=pathlib.Path, help="keep all files here")
    parser.add_argument("--self-test", action="store_true", help="test this script, without Quern")
    options = parser.parse_args()
    warnings.simplefilter("ignore", FutureWarning)  # of PEFT's use of transformers
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    report = Report()
    for name, config in models():
        if options.filter not in name:
            continue
        with tempfile.TemporaryDirectory() as temporary:
            work = (options.keep or pathlib.Path(temporary)) / name.replace(" ", "-")
            work.mkdir(parents=True)
            if options.self_test:
                test_itself(report, name, config, work)
            else:
                check(report, Quern(options.build), name, config, work, options.parts.split(","))
    return 0 if report.good else 1


if __name__ == "__main__":
    sys.exit(main())
