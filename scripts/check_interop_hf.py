#!/usr/bin/env python3
"""Checks `quern import` and `quern export --to hf` with Hugging Face `transformers`, for random small models of every
family: the imported model has the logits of transformers, the export has the bytes of the original tensors, and
transformers opens the export and computes the same logits.

Run by hand; neither the build nor the tests need it:
    cmake --build --preset release --target quern_program quern_python
    python3 -m venv venv && venv/bin/pip install torch==2.13.0 transformers safetensors numpy
    venv/bin/python scripts/check_interop_hf.py [HF_FOLDER...]

With HF_FOLDER, checks those models instead. Quern's logits come from the Python that the package was built for,
QUERN_PYTHON or /usr/bin/python3, with its own NumPy. Exits with 1 if anything differs.
"""

import os
import pathlib
import subprocess
import sys
import tempfile

BUILD = pathlib.Path(__file__).resolve().parent.parent / "build/release"
TOLERANCE = 2e-4  # of logits, absolute, in fp32
LLAMA3 = {"rope_type": "llama3", "factor": 32.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 64, "rope_theta": 500000.0}
LINEAR = {"rope_type": "linear", "factor": 2.0, "rope_theta": 10000.0}


def logits_of_quern(run, tokens, out):
    """Runs in Quern's Python."""
    import numpy
    import quern
    numpy.save(out, quern.load(run).logits(numpy.load(tokens)))


def cases(transformers):
    """Name, configuration, and how to save it."""
    T = transformers
    gpt2 = dict(vocab_size=101, n_positions=48, n_embd=48, n_layer=3, n_head=4)
    llama = dict(vocab_size=96, hidden_size=72, intermediate_size=80, num_hidden_layers=3, num_attention_heads=9,
                 num_key_value_heads=3, max_position_embeddings=256, rms_norm_eps=1e-5)
    qwen2 = dict(vocab_size=120, hidden_size=56, intermediate_size=96, num_hidden_layers=2, num_attention_heads=14,
                 num_key_value_heads=2, max_position_embeddings=128)
    qwen3 = dict(vocab_size=120, hidden_size=40, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
                 num_key_value_heads=2, head_dim=32, max_position_embeddings=128)
    yield "gpt2", T.GPT2Config(**gpt2), {}
    yield "gpt2 untied, inner 100", T.GPT2Config(**gpt2, n_inner=100, tie_word_embeddings=False), {}
    yield "gpt2 bf16", T.GPT2Config(**gpt2), {"dtype": "bfloat16"}
    yield "llama group 3", T.LlamaConfig(**llama), {}
    yield "llama tied bf16", T.LlamaConfig(**llama, tie_word_embeddings=True), {"dtype": "bfloat16"}
    yield "llama f16, sharded", T.LlamaConfig(**llama), {"dtype": "float16", "max_shard_size": "40KB"}
    yield "llama biases", T.LlamaConfig(**llama, attention_bias=True, mlp_bias=True), {}
    yield "llama group 1, head_dim 16", T.LlamaConfig(**{**llama, "num_key_value_heads": 9, "head_dim": 16}), {}
    yield "llama llama3", T.LlamaConfig(**llama, rope_parameters=LLAMA3), {}
    yield "llama linear", T.LlamaConfig(**llama, rope_parameters=LINEAR), {}
    yield "qwen2 group 7", T.Qwen2Config(**qwen2), {}
    yield "qwen2 tied bf16, sharded", T.Qwen2Config(**qwen2, tie_word_embeddings=True), {"dtype": "bfloat16",
                                                                                        "max_shard_size": "20KB"}
    yield "qwen3 head_dim 32", T.Qwen3Config(**qwen3), {}
    yield "qwen3 tied bf16", T.Qwen3Config(**qwen3, tie_word_embeddings=True), {"dtype": "bfloat16"}
    yield "qwen3 biases", T.Qwen3Config(**qwen3, attention_bias=True), {}


def randomize(model, torch):
    """Norms and biases start as ones and zeros, which would hide mistakes."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.dim() == 1:
                parameter += 0.2 * torch.randn_like(parameter)
            else:
                parameter.copy_(0.15 * torch.randn_like(parameter))


def quern(*arguments):
    done = subprocess.run([str(BUILD / "quern"), *map(str, arguments)], text=True, capture_output=True)
    if done.returncode != 0:
        raise SystemExit(f"quern {' '.join(map(str, arguments))}: {done.stderr}")
    return done.stdout


def tensors_of(folder):
    from safetensors import safe_open
    tensors = {}
    for path in sorted(pathlib.Path(folder).glob("*.safetensors")):
        with safe_open(path, "pt") as file:
            for name in file.keys():
                tensors[name] = file.get_tensor(name)
    return tensors


def without_prefix(name):
    return name.removeprefix("transformer.")


def same_tensors(original, exported, torch):
    """Every tensor of the export has the type and bytes of the original."""
    ours, theirs = tensors_of(exported), {without_prefix(n): t for n, t in tensors_of(original).items()}
    if "lm_head.weight" not in ours:
        theirs.pop("lm_head.weight", None)
    assert ours.keys() == theirs.keys(), ours.keys() ^ theirs.keys()
    for name, tensor in theirs.items():
        assert ours[name].dtype == tensor.dtype and ours[name].shape == tensor.shape, name
        assert ours[name].view(torch.uint8).equal(tensor.contiguous().view(torch.uint8)), name


def check(name, folder, work):
    import numpy
    import torch
    import transformers
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    dtype = {torch.float32: "f32", torch.bfloat16: "bf16", torch.float16: "f16"}[next(iter(tensors_of(folder).values())).dtype]
    quern("import", folder, "--run", work / "run")
    positions = min(40, getattr(model.config, "n_positions", None) or model.config.max_position_embeddings)
    tokens = numpy.random.default_rng(1).integers(0, model.config.vocab_size, (3, positions))
    numpy.save(work / "tokens.npy", tokens)
    python = os.environ.get("QUERN_PYTHON", "/usr/bin/python3")
    subprocess.run([python, __file__, "--quern", work / "run", work / "tokens.npy", work / "logits.npy"], check=True,
                   env={**os.environ, "PYTHONPATH": str(BUILD / "python")})
    with torch.no_grad():
        expected = model(torch.tensor(tokens)).logits.numpy()
    difference = numpy.abs(expected - numpy.load(work / "logits.npy")).max()
    quern("export", "--run", work / "run", "--to", "hf", "--dtype", dtype, work / "exported")
    same_tensors(folder, work / "exported", torch)
    again = transformers.AutoModelForCausalLM.from_pretrained(work / "exported", dtype=torch.float32).eval()
    with torch.no_grad():
        exported = numpy.abs(expected - again(torch.tensor(tokens)).logits.numpy()).max()
    good = difference <= TOLERANCE and exported == 0
    print(f"{'ok  ' if good else 'FAIL'} {name}: {dtype}, logits {numpy.abs(expected).max():.2f}, differ by {difference:.1e}; "
          f"export: same bytes, logits differ by {exported:.1e}", flush=True)
    return good


def main():
    import torch
    import transformers
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    good = True
    for folder in sys.argv[1:]:
        with tempfile.TemporaryDirectory() as work:
            good &= check(folder, folder, pathlib.Path(work))
    if len(sys.argv) > 1:
        return 0 if good else 1
    for name, config, saving in cases(transformers):
        with tempfile.TemporaryDirectory() as work:
            torch.manual_seed(1)
            model = transformers.AutoModelForCausalLM.from_config(config)
            randomize(model, torch)
            options = dict(saving)
            model.to(getattr(torch, options.pop("dtype", "float32"))).save_pretrained(f"{work}/original", **options)
            good &= check(name, f"{work}/original", pathlib.Path(work))
    return 0 if good else 1


if __name__ == "__main__":
    if sys.argv[1:2] == ["--quern"]:
        logits_of_quern(*sys.argv[2:])
    else:
        sys.exit(main())
