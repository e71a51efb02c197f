#!/usr/bin/env python3
"""Checks adapters (LoRA) with Hugging Face PEFT and llama.cpp.

Run by hand; neither the build nor the tests need it:
    cmake --build --preset release --target quern_program quern_python
    python3 -m venv venv && venv/bin/pip install torch==2.13.0 transformers peft safetensors numpy
    venv/bin/python scripts/check_interop_peft.py LLAMA_CPP_BIN [HF_FOLDER...]

Random adapters that PEFT makes for random models of every family are imported: Quern computes PEFT's logits. They are
exported again: the tensors have the same bytes, PEFT opens the folder and computes the same logits, and so does
transformers with the merged model. For models that Quern trains, and for HF_FOLDER instead, llama.cpp generates 64
greedy tokens from the base with --lora and from the merged model; they are those of Quern. Exits with 1 if anything
differs.
"""

import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from check_interop_gguf import PROMPT, SETTINGS, greedy_of_llama, report  # noqa: E402
from check_interop_hf import BUILD, cases, quern, randomize, tensors_of  # noqa: E402

TOLERANCE = 1e-5  # of logits, relative to the largest; fp32 sums of other orders differ by about half of it
HF_SCRIPT = pathlib.Path(__file__).parent / "check_interop_hf.py"


def adapters(gpt2):
    """Name and settings of PEFT."""
    yield "all layers", dict(r=4, lora_alpha=8, target_modules="all-linear")
    yield "rslora, some layers", dict(r=9, lora_alpha=6, use_rslora=True, lora_dropout=0.1,
                                      target_modules=["c_attn"] if gpt2 else ["q_proj", "k_proj", "down_proj"])
    yield "last block, a pattern", dict(r=2, lora_alpha=16, target_modules=r".*\.1\..*(c_proj|c_fc|k_proj|gate_proj)")


def adapted(model, settings, deviation):
    """The model with random adapters."""
    import peft
    import torch
    torch.manual_seed(2)
    model = peft.get_peft_model(model, peft.LoraConfig(task_type="CAUSAL_LM", **settings)).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "lora_" in name:
                parameter.copy_(deviation * torch.randn_like(parameter))
    return model


def logits_of_quern(run, tokens, work):
    import numpy
    numpy.save(work / "tokens.npy", tokens)
    python = os.environ.get("QUERN_PYTHON", "/usr/bin/python3")
    subprocess.run([python, "-W", "ignore", HF_SCRIPT, "--quern", run, work / "tokens.npy", work / "logits.npy"], check=True,
                   env={**os.environ, "PYTHONPATH": str(BUILD / "python")})
    return numpy.load(work / "logits.npy")


def same_bytes(a, b):
    import torch
    ours, theirs = tensors_of(a), tensors_of(b)
    return ours.keys() == theirs.keys() and all(
        ours[n].shape == t.shape and ours[n].view(torch.uint8).equal(t.contiguous().view(torch.uint8))
        for n, t in theirs.items())


def check_peft(name, folder, settings, deviation, work):
    """`folder` is a model of transformers."""
    import numpy
    import peft
    import torch
    from transformers import AutoModelForCausalLM
    load = lambda path: AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32).eval()  # noqa: E731
    model = adapted(load(folder), settings, deviation)
    model.save_pretrained(work / "adapter")
    tokens = numpy.random.default_rng(1).integers(0, model.config.vocab_size, (3, 40))
    with torch.no_grad():
        expected = model(torch.tensor(tokens)).logits.numpy()
        with model.disable_adapter():
            effect = numpy.abs(expected - model(torch.tensor(tokens)).logits.numpy()).max()
    if not (work / "base").exists():
        quern("import", folder, "--run", work / "base")
    quern("import", work / "adapter", "--base", work / "base", "--run", work / "run")
    differ = [numpy.abs(expected - logits_of_quern(work / "run", tokens, work)).max()]
    quern("export", "--run", work / "run", "--to", "peft", work / "exported")
    quern("export", "--run", work / "run", "--merge", "--to", "hf", work / "merged")
    with torch.no_grad():
        opened = peft.PeftModel.from_pretrained(load(folder), work / "exported").eval()
        by_name = peft.AutoPeftModelForCausalLM.from_pretrained(work / "exported", dtype=torch.float32).eval()
        for other in (opened, by_name, load(work / "merged")):
            differ.append(numpy.abs(expected - other(torch.tensor(tokens)).logits.numpy()).max())
    same = same_bytes(work / "adapter", work / "exported")
    return report(same and max(differ) <= TOLERANCE * numpy.abs(expected).max(),
                  f"{name}: logits {numpy.abs(expected).max():.2f}, of which adapters change {effect:.2f}; Quern differs by "
                  f"{differ[0]:.1e}; the export has {'the same' if same else 'OTHER'} bytes, PEFT's logits from it differ by "
                  f"{max(differ[1:3]):.1e}, of the merged model by {differ[3]:.1e}")


def greedy(run):
    return quern("generate", "--run", run, "--prompt", PROMPT, "--temperature", "0", "--tokens", "64").removeprefix(PROMPT)


def check_llama(name, base, run, work, ignore_end):
    """Text of the base with adapters, of the base alone, and of the merged model."""
    quern("export", "--run", base, "--to", "gguf", work / "base.gguf", "--force")
    quern("export", "--run", run, "--merge", "--to", "gguf", work / "merged.gguf", "--force")
    ours, good = greedy(run).rstrip("\n"), True
    changed = ours != greedy(base).rstrip("\n")
    for dtype in ("f32", "f16"):
        quern("export", "--run", run, "--to", "gguf-lora", "--dtype", dtype, work / f"{dtype}-lora.gguf", "--force")
        theirs = greedy_of_llama(work / "base.gguf", ignore_end, "--lora", work / f"{dtype}-lora.gguf").rstrip("\n")
        same = ours == theirs
        good &= report(same or dtype != "f32", f"{name}: 64 greedy tokens, --lora {dtype}: {'same' if same else 'OTHER'}; adapters "
                       f"{'changed' if changed else 'did not change'} the text" + ("" if same else f"\n  {ours!r}\n  {theirs!r}"))
    theirs = greedy_of_llama(work / "merged.gguf", ignore_end).rstrip("\n")
    return good & report(ours == theirs, f"{name}: 64 greedy tokens, merged" + ("" if ours == theirs else f"\n  {ours!r}\n  {theirs!r}"))


def check_trained(family, work):
    from transformers import AutoModelForCausalLM
    base, gpt2 = work / "trained", family == "gpt2"
    quern("train", "--run", base, *SETTINGS, "--set", f"model.family={family}", "--set", "data.tokenizer=bpe")
    quern("export", "--run", base, "--to", "hf", work / "hf")
    good = True
    for name, settings in adapters(gpt2):
        model = adapted(AutoModelForCausalLM.from_pretrained(work / "hf"), settings, 0.15)
        model.save_pretrained(work / name / "adapter")
        quern("import", work / name / "adapter", "--base", base, "--run", work / name / "run")
        good &= check_llama(f"{family}, {name}", base, work / name / "run", work, False)
    return good


def check_folder(folder, work):
    settings = dict(r=8, lora_alpha=16, target_modules="all-linear")
    good = check_peft(folder, folder, settings, 0.02, work)
    return check_llama(folder, work / "base", work / "run", work, False) and good


def main():
    import torch
    import transformers
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    good = True
    for folder in sys.argv[2:]:
        with tempfile.TemporaryDirectory() as work:
            good &= check_folder(folder, pathlib.Path(work))
    if len(sys.argv) > 2:
        return 0 if good else 1
    for name, config, saving in cases(transformers):
        if "dtype" in saving:  # of the base; adapters have types of their own
            continue
        for kind, settings in adapters(name.startswith("gpt2")):
            with tempfile.TemporaryDirectory() as work:
                torch.manual_seed(1)
                model = transformers.AutoModelForCausalLM.from_config(config)
                randomize(model, torch)
                model.save_pretrained(f"{work}/original")
                good &= check_peft(f"{name}, {kind}", f"{work}/original", settings, 0.1, pathlib.Path(work))
    for family in ("gpt2", "llama", "qwen2", "qwen3"):
        with tempfile.TemporaryDirectory() as work:
            good &= check_trained(family, pathlib.Path(work))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
