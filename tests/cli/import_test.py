"""quern import, and quern export in every format. scripts/check_interop_*.py compare with other programs."""

import json
import pathlib
import struct
import time

import program

SETTINGS = ("--steps", "2", "--set", "data.tokenizer=bpe", "--set", "data.vocabulary=300")
FAMILIES = {
    "gpt2": (),
    "llama": ("--set", "model.kv_heads=1", "--set", "model.rope_scaling=llama3", "--set", "model.rope_factor=8",
              "--set", "model.rope_low_frequency=1.5", "--set", "model.rope_original_context=20"),
    "qwen2": ("--set", "model.tied_output=false"),
    "qwen3": ("--set", "model.head_dim=32", "--set", "model.tied_output=false"),
}


def weights(folder):
    """Names with types and bytes of a safetensors file."""
    data = (pathlib.Path(folder) / "model.safetensors").read_bytes()
    length, = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + length])
    header.pop("__metadata__")
    return {name: (entry["dtype"], data[8 + length + entry["data_offsets"][0]:8 + length + entry["data_offsets"][1]])
            for name, entry in header.items()}


class Import(program.ProgramTest):
    def trained(self, family):
        self.train(family, *SETTINGS, "--set", f"model.family={family}", *FAMILIES[family])
        return self.path(family)

    def hash_of(self, run):
        return self.info(run)["weights_hash"]

    def test_an_export_comes_back_unchanged(self):
        for family in FAMILIES:
            self.trained(family)
            for to in ("hf", "gguf"):
                out, again = self.path(f"{family}-{to}"), f"{family}-{to}-again"
                self.works("export", "--run", self.path(family), "--to", to, out)
                found = json.loads(self.works("import", out, "--run", self.path(again), "--json"))
                self.assertEqual(found["weights_hash"], self.hash_of(family), (family, to))
                self.assertEqual(found["model"]["family"], family)
                self.assertEqual(self.hash_of(again), self.hash_of(family))
                prompt = ("--prompt", "Once", "--tokens", "20", "--temperature", "0")
                self.assertEqual(self.works("generate", "--run", self.path(again), *prompt),
                                 self.works("generate", "--run", self.path(family), *prompt))

    def test_an_output_of_its_own_is_imported_whatever_the_config_says(self):
        self.trained("qwen2")
        self.works("export", "--run", self.path("qwen2"), "--to", "hf", self.path("hf"))
        config = json.loads((self.folder / "hf/config.json").read_text())
        self.write("hf/config.json", json.dumps({**config, "tie_word_embeddings": True}))
        found = program.quern("import", self.path("hf"), "--run", self.path("again"))
        self.assertEqual(found.returncode, 0, found.stderr)
        self.assertIn("lm_head.weight differs from model.embed_tokens.weight", found.stderr)
        self.assertEqual(self.hash_of("again"), self.hash_of("qwen2"))

    def test_rounded_weights_keep_their_bytes(self):
        self.trained("llama")
        for dtype in ("f16", "bf16"):
            self.works("export", "--run", self.path("llama"), "--to", "hf", "--dtype", dtype, self.path(dtype))
            self.works("import", self.path(dtype), "--run", self.path(f"{dtype}-run"))
            for to in ("hf", "gguf"):
                name = f"{dtype}-{to}"
                self.works("export", "--run", self.path(f"{dtype}-run"), "--to", to, "--dtype", dtype, self.path(name))
            self.assertEqual(weights(self.path(f"{dtype}-hf")), weights(self.path(dtype)))
            self.assertEqual({dtype.upper()}, {kind for kind, _ in weights(self.path(dtype)).values()})
            self.works("import", self.path(f"{dtype}-gguf"), "--run", self.path(f"{dtype}-gguf-run"))
            self.assertEqual(self.hash_of(f"{dtype}-gguf-run"), self.hash_of(f"{dtype}-run"))

    def test_blocks_of_eight_bits(self):
        self.trained("llama")
        self.works("export", "--run", self.path("llama"), "--to", "gguf", "--dtype", "q8_0", self.path("a.gguf"))
        self.works("import", self.path("a.gguf"), "--run", self.path("a"))
        self.works("export", "--run", self.path("a"), "--to", "gguf", self.path("f32.gguf"))
        self.assertLess(pathlib.Path(self.path("a.gguf")).stat().st_size, pathlib.Path(self.path("f32.gguf")).stat().st_size)
        self.train("narrow", *SETTINGS, "--width", "24", "--set", "model.family=llama")
        run = program.quern("export", "--run", self.path("narrow"), "--to", "gguf", "--dtype", "q8_0", self.path("b.gguf"))
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn("tensors became F16, because their rows are no multiple of 32: token_embd.weight, ...", run.stderr)
        self.fails("export", "--run", self.path("llama"), "--to", "hf", "--dtype", "q8_0", self.path("c"),
                   says=["dtype: expected f32, f16 or bf16 for a Hugging Face folder, found q8_0"])

    def test_a_run_can_start_from_an_imported_model(self):
        self.trained("qwen3")
        self.works("export", "--run", self.path("qwen3"), "--to", "hf", self.path("hf"))
        template = "{% for message in messages %}{{ message.content }}{% endfor %}"
        self.write("hf/chat_template.jinja", template)
        self.write("hf/generation_config.json", json.dumps({"eos_token_id": [299, 5], "temperature": 0.7}))
        self.works("import", self.path("hf"), "--run", self.path("a"), "--context", "16")
        self.assertEqual(self.info("a")["model"]["context"], 16)
        self.works("eval", self.path("a"), self.write("book.txt", program.TEXT))
        self.fails("train", "--run", self.path("a"), "--resume", "--steps", "3",
                   says=["a: expected a run of `quern train`, found an imported model", "quern train --from "])
        self.works("train", "--from", self.path("a"), self.path("book.txt"), "--run", self.path("b"), "--steps", "2")
        self.assertEqual(self.info("b")["step"], 2)
        self.works("export", self.path("b"), self.path("c"))
        for folder in ("a", "b", "b/checkpoints/step-00000002", "c"):
            self.assertEqual((self.folder / folder / "chat_template.jinja").read_text(), template)
            self.assertEqual(json.loads((self.folder / folder / "generation_config.json").read_text())["temperature"], 0.7)
        self.assertEqual(json.loads((self.folder / "c/config.json").read_text())["eos_token_id"], [299, 5])
        self.assertEqual((self.folder / "c/tokenizer.json").read_text(), (self.folder / "hf/tokenizer.json").read_text())

    def test_nothing_is_left_of_a_failed_import(self):
        self.trained("gpt2")
        self.works("export", "--run", self.path("gpt2"), "--to", "hf", self.path("hf"))
        config = json.loads((self.folder / "hf/config.json").read_text())
        self.write("hf/config.json", json.dumps({**config, "n_layer": 2}))
        self.fails("import", self.path("hf"), "--run", self.path("a"), says=["expected tensor 'h.1.ln_1.weight' of shape (32)"])
        self.write("hf/config.json", json.dumps({**config, "n_positions": 31}))
        self.fails("import", self.path("hf"), "--run", self.path("a"),
                   says=["tensor 'wpe.weight': expected shape (31, 32), as config.json says, found (32, 32)"])
        self.write("hf/config.json", json.dumps({**config, "activation_function": "relu"}))
        self.fails("import", self.path("hf"), "--run", self.path("a"),
                   says=["config.json: activation_function: expected gelu_new or gelu_pytorch_tanh, found 'relu'"])
        self.write("hf/config.json", json.dumps(config))
        self.write("hf/tokenizer.json", "{}")
        self.fails("import", self.path("hf"), "--run", self.path("a"), says=["tokenizer.json"])
        self.works("export", "--run", self.path("gpt2"), "--to", "gguf", self.path("a.gguf"))
        whole = (self.folder / "a.gguf").read_bytes()
        self.write("a.gguf", whole[:-40])
        self.fails("import", self.path("a.gguf"), "--run", self.path("a"), says=["the file is incomplete"])
        self.assertFalse((self.folder / "a").exists())
        self.assertEqual([p.name for p in self.folder.iterdir() if p.name.startswith(".")], [])

    def test_bad_usage(self):
        self.trained("gpt2")
        self.works("export", "--run", self.path("gpt2"), "--to", "hf", self.path("hf"))
        self.fails("import", "--run", self.path("a"), says=["import: expected a Hugging Face folder, a GGUF file or a PEFT folder"])
        self.fails("import", self.path("hf"), says=["import: expected --run DIR, a new directory"])
        self.fails("import", self.path("none"), "--run", self.path("a"), says=["none: expected a Hugging Face folder or a GGUF "
                                                                               "file, found nothing of that name"])
        self.fails("import", self.folder, "--run", self.path("a"), says=["expected a Hugging Face folder with a config.json"])
        self.works("import", self.path("hf"), "--run", self.path("imported"))
        self.fails("eval", self.path("imported"), says=["an imported model without held-out text; name a text"])
        for more in ((), ("--steps", "5")):
            self.fails("train", "--run", self.path("imported"), "--resume", *more, says=["quern train --from"])
        self.fails("import", self.path("hf"), "--run", self.path("gpt2"), says=["gpt2: holds a run already"])
        self.fails("import", self.path("hf"), "--run", self.path("hf"), says=["hf: expected a new or empty folder"])
        self.fails("import", self.path("hf"), "--run", self.path("a"), "--context", "33",
                   says=["context: expected 1 to 32, the positions of the model, found 33"])
        self.fails("import", self.path("hf/config.json"), "--run", self.path("a"), says=["expected a GGUF file"])


class Killed(program.ProgramTest):
    def test_killed_imports_and_exports_leave_nothing_after_the_next(self):
        self.works("train", "--run", self.path("run"), "--steps", "1", "--layers", "4", "--heads", "4", "--width", "512",
                   "--context", "32", "--batch", "2", "--set", "data.stories_bytes=50000", "--set",
                   "train.validation_batches=1", "--set", "optimizer.warmup=1", *SETTINGS[2:])
        self.works("export", "--run", self.path("run"), "--to", "hf", self.path("hf"))
        commands = {"again": ("import", self.path("hf"), "--run", self.path("again")),
                    "out": ("export", "--run", self.path("run"), "--to", "hf", self.path("out")),
                    "out.gguf": ("export", "--run", self.path("run"), "--to", "gguf", self.path("out.gguf"))}
        left = 0
        for name, command in commands.items():
            for attempt in range(25):
                process = program.start(*command)
                time.sleep(0.004 * attempt)
                process.kill()
                process.communicate()
                if (self.folder / name).exists():
                    break
            left += sum(path.name.startswith(".tmp-quern") for path in self.folder.iterdir())
            if not (self.folder / name).exists():
                self.works(*command)
            self.assertEqual([path.name for path in self.folder.iterdir() if path.name.startswith(".tmp-quern")], [], name)
        print(f"{left} kills left something behind for the next command")
        self.assertEqual(self.info("again")["weights_hash"], self.info("run")["weights_hash"])


class ForcedExport(program.ProgramTest):
    def test_only_an_export_is_replaced(self):
        self.train("run", *SETTINGS)
        run = self.path("run")
        for to, out in (("hf", "folder"), ("gguf", "a.gguf")):
            export = ("export", "--run", run, "--to", to, self.path(out))
            self.works(*export)
            self.fails(*export, says=["--force"])
            self.works(*export, "--force")
        self.write("folder/notes.txt", "mine")
        self.fails("export", "--run", run, "--force", self.path("folder"), says=["expected an earlier export to replace"])
        self.write("b.gguf", "mine")
        self.fails("export", "--run", run, "--to", "gguf", "--force", self.path("b.gguf"), says=["found another file"])
        self.assertEqual((self.folder / "b.gguf").read_text(), "mine")
        self.fails("export", "--run", run, self.path("run/checkpoints/step-00000009"),
                   says=["expected a place outside the checkpoints of a run"])
        self.assertEqual((self.folder / "folder/notes.txt").read_text(), "mine")


if __name__ == "__main__":
    program.main()
