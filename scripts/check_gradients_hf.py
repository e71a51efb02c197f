#!/usr/bin/env python3
"""Compares the loss and every gradient of imported models with those of Hugging Face transformers.

Run by hand; neither the build nor the tests need PyTorch:
    python3 -m venv venv && venv/bin/pip install torch==2.13.0 transformers safetensors
    cmake --build build/release --target quern_program gradient_tool
    venv/bin/python scripts/check_gradients_hf.py

Small random models of every family, tied and untied, with grouped heads, head sizes other than width / heads, biases and
scaled rotary positions. The difference of a gradient is relative to the norm of its tensor; the bound is 1e-4.
"""

import argparse
import pathlib
import subprocess
import sys
import tempfile

try:
    import numpy
    import torch
    import transformers
    from safetensors import safe_open
except ImportError as error:
    sys.exit(f"check_gradients_hf: {error}; pip install torch==2.13.0 transformers safetensors")

BOUND = 1e-4
LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 32, "rope_theta": 10000.0}


def llama_like(config_class, **changes):
    sizes = {"vocab_size": 211, "hidden_size": 42, "intermediate_size": 77, "num_hidden_layers": 3,
             "num_attention_heads": 3, "num_key_value_heads": 1, "max_position_embeddings": 96,
             "tie_word_embeddings": False, "bos_token_id": 1, "eos_token_id": 2}
    return config_class(**{**sizes, **changes})


def models():
    """Name and config of each model."""
    T = transformers
    yield "gpt2", T.GPT2Config(vocab_size=211, n_positions=96, n_embd=42, n_layer=3, n_head=3, resid_pdrop=0, embd_pdrop=0,
                               attn_pdrop=0, bos_token_id=1, eos_token_id=2)
    yield "gpt2 untied", T.GPT2Config(vocab_size=211, n_positions=96, n_embd=42, n_layer=2, n_head=3, n_inner=90,
                                      layer_norm_epsilon=1e-6, tie_word_embeddings=False, resid_pdrop=0, embd_pdrop=0,
                                      attn_pdrop=0, bos_token_id=1, eos_token_id=2)
    yield "llama", llama_like(T.LlamaConfig)
    yield "llama tied", llama_like(T.LlamaConfig, tie_word_embeddings=True, num_key_value_heads=3)
    yield "llama 7 per group", llama_like(T.LlamaConfig, num_attention_heads=14, num_key_value_heads=2, head_dim=10)
    yield "llama biases, llama3", llama_like(T.LlamaConfig, attention_bias=True, mlp_bias=True, rope_parameters=LLAMA3)
    yield "llama linear", llama_like(T.LlamaConfig,
                                     rope_parameters={"rope_type": "linear", "factor": 4.0, "rope_theta": 500.0})
    yield "qwen2", llama_like(T.Qwen2Config)
    yield "qwen2 tied", llama_like(T.Qwen2Config, tie_word_embeddings=True, num_attention_heads=6, num_key_value_heads=2,
                                   head_dim=8)
    yield "qwen3", llama_like(T.Qwen3Config, head_dim=32)
    yield "qwen3 tied, biases", llama_like(T.Qwen3Config, head_dim=14, tie_word_embeddings=True, attention_bias=True)


def random_model(config):
    """Weights large enough that every gradient is."""
    torch.manual_seed(7)
    model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="eager").eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
    return model


def largest_difference(model, file, folder):
    """Of every gradient, relative to the norm of its tensor."""
    found = {}
    with safe_open(folder / "gradient.safetensors", "pt") as stored:
        loss = float(stored.metadata()["loss"])
        for name in stored.keys():
            found[name.removeprefix("transformer.")] = stored.get_tensor(name)
    worst = ("", 0.0)
    for name, parameter in model.named_parameters():
        name = name.removeprefix("transformer.")
        difference = ((found.pop(name) - parameter.grad).abs().max() / parameter.grad.norm()).item()
        worst = max(worst, (name, difference), key=lambda pair: pair[1])
    if found:
        sys.exit(f"check_gradients_hf: gradients without a parameter: {sorted(found)}")
    return loss, worst


def check(name, config, options, folder):
    model = random_model(config)
    model.save_pretrained(folder / "hf")
    ids = torch.randint(config.vocab_size, (3, 41))
    numpy.asarray(ids, dtype=numpy.int32).tofile(folder / "tokens")
    for command in ([options.quern, "import", folder / "hf", "--run", folder / "run"],
                    [options.tool, folder / "run", folder / "tokens", "40", folder / "gradient.safetensors"]):
        subprocess.run([str(word) for word in command], check=True, stdout=subprocess.DEVNULL)
    logits = model(ids[:, :-1]).logits
    expected = torch.nn.functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())
    expected.backward()
    loss, (tensor, difference) = largest_difference(model, "gradient.safetensors", folder)
    loss_difference = abs(loss / expected.item() - 1)
    good = difference < BOUND and loss_difference < BOUND
    print(f"{'ok  ' if good else 'FAIL'} {name:22} loss {loss:.6f}, off by {loss_difference:.1e};"
          f" gradients by {difference:.1e} at most ({tensor})")
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quern", default="build/release/quern")
    parser.add_argument("--tool", default="build/release/tests/gradient_tool")
    options = parser.parse_args()
    good = True
    for name, config in models():
        with tempfile.TemporaryDirectory() as folder:
            good = check(name, config, options, pathlib.Path(folder)) and good
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
