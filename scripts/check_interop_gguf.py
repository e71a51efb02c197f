#!/usr/bin/env python3
"""Checks `quern import FILE.gguf` and `quern export --to gguf` with the readers of others: transformers, the `gguf`
package, and llama.cpp.

Run by hand; neither the build nor the tests need it:
    cmake --build --preset release --target quern_program quern_python
    python3 -m venv venv && venv/bin/pip install torch==2.13.0 transformers safetensors numpy gguf
    venv/bin/python scripts/check_interop_gguf.py LLAMA_CPP_BIN [FILE.gguf...]

Random models of every family go from Hugging Face through Quern to GGUF and back: transformers computes the same logits
from the GGUF file, the tensors come back with their bytes, and F16, BF16 and Q8_0 have the bits of the gguf package.
Small models that Quern trains, with byte, char and BPE tokenizers, are compared with llama.cpp: the ids of a text, 64
tokens of greedy text, and the perplexity. FILE.gguf are imported, exported as F32 and Q8_0, and compared in the same
way; their Q8_0 also with that of llama-quantize. Exits with 1 if anything differs.
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from check_interop_hf import BUILD, cases, quern, randomize, tensors_of, same_tensors  # noqa: E402

TOLERANCE = 2e-4     # of logits, absolute
PERPLEXITY = 1e-3    # relative
WINDOW = 256         # tokens
PROMPT = "Once upon a time"
SETTINGS = ["--steps", "300", "--set", "model.layers=2", "--set", "model.heads=4", "--set", "model.width=64",
            "--set", "model.context=256", "--set", "data.stories_bytes=200000", "--set", "data.vocabulary=400"]


def perplexity_of_quern(run, text):
    """Runs in Quern's Python: windows as llama-perplexity takes them, of which the second half is predicted."""
    import numpy
    import quern
    model = quern.load(run)
    ids = model.encode(pathlib.Path(text).read_text())
    total, count = 0.0, 0
    for begin in range(0, len(ids) - WINDOW + 1, WINDOW):
        window = ids[begin:begin + WINDOW]
        logits = model.logits(window).astype(numpy.float64)[WINDOW // 2:-1]
        logits -= logits.max(axis=1, keepdims=True)
        targets = window[WINDOW // 2 + 1:]
        total += (numpy.log(numpy.exp(logits).sum(axis=1)) - logits[numpy.arange(len(targets)), targets]).sum()
        count += len(targets)
    print(numpy.exp(total / count))


def ids_of_quern(run, text):
    import quern
    print(*quern.load(run).encode(text))


def in_quern_python(*arguments):
    python = os.environ.get("QUERN_PYTHON", "/usr/bin/python3")
    return subprocess.run([python, "-W", "ignore", __file__, *map(str, arguments)], check=True, text=True,
                          capture_output=True, env={**os.environ, "PYTHONPATH": str(BUILD / "python")}).stdout


def llama(tool, *arguments):
    done = subprocess.run([str(pathlib.Path(sys.argv[1]) / tool), *map(str, arguments)], text=True, capture_output=True)
    if done.returncode != 0:
        raise SystemExit(f"{tool}: {done.stderr[-2000:]}")
    return done.stdout + (done.stderr if tool == "llama-perplexity" else "")


def report(good, text):
    print("ok  " if good else "FAIL", text, flush=True)
    return good


def check_types(run, work):
    """The blocks of each format against the gguf package, which has its own code."""
    import gguf
    import numpy
    f32 = {t.name: t for t in gguf.GGUFReader(work / "f32.gguf").tensors}
    for name in ("f16", "bf16", "q8_0"):
        quern("export", "--run", run, "--to", "gguf", "--dtype", name, work / f"{name}.gguf")
        for tensor in gguf.GGUFReader(work / f"{name}.gguf").tensors:
            shape = [int(n) for n in reversed(tensor.shape)]
            values = numpy.array(f32[tensor.name].data).view(numpy.float32).reshape(shape)
            expected = gguf.quants.quantize(values, tensor.tensor_type)
            assert expected.tobytes() == tensor.data.tobytes(), (name, tensor.name)
            if name != "q8_0" or len(shape) == 1 or shape[-1] % 32 == 0:
                wanted = "F32" if len(shape) == 1 or tensor.name == "position_embd.weight" else name.upper()
                assert tensor.tensor_type.name == wanted, (tensor.name, tensor.tensor_type)


def check_random(name, config, work):
    import numpy
    import torch
    import transformers
    torch.manual_seed(1)
    model = transformers.AutoModelForCausalLM.from_config(config).eval()
    randomize(model, torch)
    model.save_pretrained(work / "original")
    quern("import", work / "original", "--run", work / "run")
    quern("export", "--run", work / "run", "--to", "gguf", work / "f32.gguf")
    quern("import", work / "f32.gguf", "--run", work / "back")
    quern("export", "--run", work / "back", "--to", "hf", work / "exported")
    same_tensors(work / "original", work / "exported", torch)
    check_types(work / "run", work)
    # Without the configuration, transformers takes 1024 positions and an inner width of 4 x width for GPT-2, no biases
    # for a llama, heads of 128 for a qwen3, and no scaling of positions, whatever the keys and tensors say.
    known = {"config": config} if name.startswith(("gpt2", "qwen3")) or name.endswith(("biases", "llama3", "linear")) else {}
    read = transformers.AutoModelForCausalLM.from_pretrained(work, gguf_file="f32.gguf", dtype=torch.float32, **known).eval()
    back = transformers.AutoModelForCausalLM.from_pretrained(work / "exported").eval()
    tokens = torch.randint(0, config.vocab_size, (3, 40))
    with torch.no_grad():
        expected = model(tokens).logits
        differ = [float((expected - other(tokens).logits).abs().max()) for other in (read, back)]
    return report(differ[0] <= TOLERANCE and differ[1] <= TOLERANCE,
                  f"{name}: same tensors after GGUF; f16, bf16, q8_0 as gguf-py; logits of transformers from the GGUF "
                  f"differ by {differ[0]:.1e}, after import from GGUF by {differ[1]:.1e}")


def greedy_of_llama(file, ignore_end, *more):
    text = llama("llama-completion", "-m", file, "-p", PROMPT, "-n", "64", "--temp", "0", "-no-cnv", "-t", "2", "-fa", "off",
                 "-ctk", "f32", "-ctv", "f32", "--no-display-prompt", *more, *(["--ignore-eos"] if ignore_end else []))
    return text.rstrip("\n").removesuffix(" [end of text]")


def check_llama(name, run, text, work, ignore_end):
    good = True
    for dtype in ("f32", "q8_0"):
        file = work / f"{dtype}.gguf"
        quern("export", "--run", run, "--to", "gguf", "--dtype", dtype, file, "--force")
        found = llama("llama-perplexity", "-m", file, "-f", text, "-c", WINDOW, "-b", WINDOW, "-t", "2", "-fa", "off", "-ctk", "f32",
                      "-ctv", "f32")
        theirs = float(re.search(r"Final estimate: PPL = ([\d.]+)", found).group(1))
        if dtype == "f32":
            ours = float(in_quern_python("--perplexity", run, text))
            close = abs(theirs / ours - 1) <= PERPLEXITY
            good &= report(close, f"{name}: perplexity {ours:.4f}, llama.cpp {theirs:.4f} ({theirs / ours - 1:+.2e})")
        else:
            report(True, f"{name}: perplexity of Q8_0 in llama.cpp {theirs:.4f} ({theirs / ours - 1:+.2e})")
    file = work / "f32.gguf"
    sample = pathlib.Path(text).read_text()[:2000]
    listed = llama("llama-tokenize", "-m", file, "-p", sample, "--ids", "--no-parse-special", "--log-disable")
    theirs = [int(n) for n in re.findall(r"-?\d+", listed)]
    good &= report(theirs == [int(n) for n in in_quern_python("--ids", run, sample).split()],
                   f"{name}: {len(theirs)} ids of a text")
    ours = quern("generate", "--run", run, "--prompt", PROMPT, "--temperature", "0", "--tokens", "64").removeprefix(PROMPT)
    theirs = greedy_of_llama(file, ignore_end)
    same = ours.rstrip("\n") == theirs.rstrip("\n")
    good &= report(same, f"{name}: 64 greedy tokens" + ("" if same else f"\n  ours   {ours!r}\n  theirs {theirs!r}"))
    return good


def trained(work):
    """Runs that Quern trains, and whether their tokenizer has no end of text."""
    for family, tokenizer in (("gpt2", "byte"), ("gpt2", "char"), ("llama", "bpe"), ("qwen3", "bpe"), ("gpt2", "bpe")):
        run = work / f"{family}-{tokenizer}"
        quern("train", "--run", run, *SETTINGS, "--set", f"model.family={family}", "--set", f"data.tokenizer={tokenizer}")
        yield f"{family}, {tokenizer}", run, tokenizer != "bpe"


def check_file(file, work):
    import gguf
    quern("import", file, "--run", work / "run")
    text = work / "text.txt"
    text.write_text(pathlib.Path(__file__).parent.parent.joinpath("docs/architecture.md").read_text()[:12000])
    good = check_llama(file, work / "run", text, work, False)
    llama("llama-quantize", work / "f32.gguf", work / "reference.gguf", "q8_0")
    ours = {t.name: t for t in gguf.GGUFReader(work / "q8_0.gguf").tensors}
    reference = gguf.GGUFReader(work / "reference.gguf").tensors
    same = all(t.tensor_type == ours[t.name].tensor_type and t.data.tobytes() == ours[t.name].data.tobytes()
               for t in reference)
    return good & report(same and len(reference) == len(ours), f"{file}: {len(ours)} tensors of Q8_0 as llama-quantize")


def main():
    import transformers
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    good = True
    for file in sys.argv[2:]:
        with tempfile.TemporaryDirectory() as work:
            good &= check_file(file, pathlib.Path(work))
    if len(sys.argv) > 2:
        return 0 if good else 1
    for name, config, saving in cases(transformers):
        if saving or "qwen3 biases" in name:  # types are Quern's business here; llama.cpp has no biases in a qwen3
            continue
        with tempfile.TemporaryDirectory() as work:
            good &= check_random(name, config, pathlib.Path(work))
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        text = work / "text.txt"
        text.write_text("Once upon a time there was a little dog. The dog was happy and it ran to the park. " * 60)
        for name, run, ignore_end in trained(work):
            good &= check_llama(name, run, text, work, ignore_end)
    return 0 if good else 1


if __name__ == "__main__":
    if sys.argv[1:2] == ["--perplexity"]:
        perplexity_of_quern(*sys.argv[2:])
    elif sys.argv[1:2] == ["--ids"]:
        ids_of_quern(*sys.argv[2:])
    else:
        sys.exit(main())
