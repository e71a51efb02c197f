"""Runs with adapters: quern export --to peft, --to gguf-lora and --merge, quern import --base, and quern info.

scripts/check_interop_peft.py compares with other programs.
"""

import json

import program

SETTINGS = ("--steps", "2", "--set", "data.tokenizer=bpe", "--set", "data.vocabulary=300",
            "--set", "model.family=llama", "--set", "model.kv_heads=1")
ADAPTERS = ("--set", "lora.rank=2", "--set", "lora.targets=[\"q_proj\", \"up_proj\"]", "--set", "optimizer.rate=0.05")
PROMPT = ("--prompt", "Once", "--tokens", "20", "--temperature", "0")


class Adapters(program.ProgramTest):
    def adapted(self):
        """A run `base`, and a run `adapted` that adapts it."""
        self.train("base", *SETTINGS)
        self.works("train", "--from", self.path("base"), self.write("book.txt", program.TEXT), "--run", self.path("adapted"),
                   "--steps", "3", *ADAPTERS)

    def text(self, run):
        return self.works("generate", "--run", self.path(run), *PROMPT)

    def test_adapters_come_back_unchanged(self):
        self.adapted()
        self.assertIn("step 3 of", self.works("export", "--run", self.path("adapted"), "--to", "peft", self.path("peft")))
        printed = self.works("import", self.path("peft"), "--base", self.path("base"), "--run", self.path("again"))
        self.assertIn("adapters     rank 2, alpha 32, ", printed)
        self.assertIn("from         " + self.path("peft") + ": PEFT adapters, F32\n", printed)
        self.assertEqual(self.hash("again"), self.hash("adapted"))
        self.assertEqual(self.text("again"), self.text("adapted"))
        self.works("eval", self.path("again"), self.path("book.txt"))
        self.works("export", "--run", self.path("again"), "--to", "peft", self.path("peft2"))
        self.assertEqual(program.contents(self.path("peft")), program.contents(self.path("peft2")))
        self.fails("train", "--run", self.path("again"), "--resume", "--steps", "3", says=["quern train --from "])
        found = json.loads(self.works("import", self.path("peft"), "--base", self.path("base"), "--run", self.path("third"),
                                      "--context", "16", "--json"))
        self.assertEqual((found["base"], found["adapters"]["targets"]), (self.path("base"), ["q_proj", "up_proj"]))
        self.assertEqual(self.info("third")["model"]["context"], 16)

    def test_a_run_can_start_from_imported_adapters(self):
        self.adapted()
        self.works("export", "--run", self.path("adapted"), "--to", "peft", self.path("peft"))
        self.works("import", self.path("peft"), "--base", self.path("base"), "--run", self.path("again"))
        self.works("export", "--run", self.path("again"), "--merge", "--to", "hf", self.path("hf"))
        self.works("import", self.path("hf"), "--run", self.path("merged"))
        self.works("train", "--from", self.path("again"), self.path("book.txt"), "--run", self.path("whole"), "--steps", "0",
                   "--set", "lora.rank=0")
        self.assertEqual(self.hash("whole"), self.hash("merged"))
        self.assertNotIn("base", self.info("whole"))
        self.works("train", "--from", self.path("again"), self.path("book.txt"), "--run", self.path("more"), "--steps", "1",
                   *ADAPTERS)
        self.assertEqual(self.info("more")["base"]["weights_hash"], self.hash("merged"))

    def test_merged_models(self):
        self.adapted()
        for to, out in (("hf", "hf"), ("gguf", "a.gguf")):
            self.works("export", "--run", self.path("adapted"), "--merge", "--to", to, self.path(out))
            self.works("import", self.path(out), "--run", self.path(f"{to}-run"))
            self.assertEqual(self.text(f"{to}-run"), self.text("adapted"))
        self.assertEqual(self.hash("hf-run"), self.hash("gguf-run"))
        self.assertNotIn("adapters", self.info("hf-run"))

    def test_a_choice_is_needed(self):
        self.adapted()
        for to in ("hf", "gguf"):
            self.fails("export", "--run", self.path("adapted"), "--to", to, self.path("out"),
                       says=[f"found --to {to} alone; add --merge for the whole model, or choose --to peft or --to gguf-lora"])
            self.fails("export", "--run", self.path("base"), "--merge", "--to", to, self.path("out"), says=["leave out --merge"])
        for to in ("peft", "gguf-lora"):
            self.fails("export", "--run", self.path("adapted"), "--merge", "--to", to, self.path("out"),
                       says=["merge: expected --to hf or --to gguf"])
            self.fails("export", "--run", self.path("base"), "--to", to, self.path("out"),
                       says=[f"expected a run with adapters for --to {to}, found a whole model"])
            self.fails("export", "--run", self.path("adapted"), "--to", to, "--dtype", "q8_0", self.path("out"),
                       says=["dtype: expected f32, f16 or bf16 for adapters"])
        self.assertFalse((self.folder / "out").exists())

    def test_only_an_export_is_replaced(self):
        self.adapted()
        for to, out in (("peft", "folder"), ("gguf-lora", "a.gguf")):
            export = ("export", "--run", self.path("adapted"), "--to", to, self.path(out))
            found = json.loads(self.works(*export, "--json"))
            self.assertEqual((found["to"], found["merge"]), (to, False))
            self.fails(*export, says=["--force"])
            self.works(*export, "--force")
        newest = self.folder / "adapted/checkpoints/step-00000003"
        self.fails("export", "--run", self.path("adapted"), "--to", "peft", "--force", newest,
                   says=["expected a place outside the checkpoints of a run"])
        self.fails("export", "--run", self.path("adapted"), "--merge", "--to", "gguf", "--force", self.path("a.gguf"),
                   says=["found another file"])

    def test_info(self):
        self.adapted()
        printed = self.works("info", self.path("adapted"))
        self.assertRegex(printed, r"\nadapters     rank 2, alpha 32, dropout 0: \d+ trainable parameters; layers: q_proj, up_proj\n")
        self.assertIn("\nbase         " + self.path("adapted/base/step-00000002") + "\n", printed)
        found = self.info("adapted")
        self.assertEqual(found["adapters"], {"rank": 2, "alpha": 32, "scale": 16, "dropout": 0, "rslora": False,
                                             "targets": ["q_proj", "up_proj"]})
        self.assertEqual(found["base"]["weights_hash"], self.hash("base"))
        self.assertEqual(found["parameters"], self.info("base")["parameters"] + found["trainable_parameters"])

    def test_bad_usage(self):
        self.adapted()
        self.works("export", "--run", self.path("adapted"), "--to", "peft", self.path("peft"))
        self.fails("import", self.path("peft"), "--run", self.path("a"), says=["found the adapters of one", "--base RUN"])
        self.fails("import", self.path("peft"), "--base", self.path("none"), "--run", self.path("a"), says=["none: expected a run"])
        self.fails("import", self.path("base"), "--base", self.path("base"), "--run", self.path("a"),
                   says=["expected a PEFT folder with an adapter_config.json, found none"])
        self.fails("import", self.path("peft"), "--base", self.path("base"), "--run", self.path("adapted"),
                   says=["adapted: holds a run already"])
        self.train("small", *SETTINGS, "--width", "16")
        self.fails("import", self.path("peft"), "--base", self.path("small"), "--run", self.path("a"),
                   says=["expected shape (2, 16) for r = 2 and the base model, found (2, 32)"])
        config = json.loads((self.folder / "peft/adapter_config.json").read_text())
        self.write("peft/adapter_config.json", json.dumps({**config, "use_dora": True}))
        self.fails("import", self.path("peft"), "--base", self.path("base"), "--run", self.path("a"),
                   says=["adapter_config.json: use_dora: expected false, found true"])
        self.assertFalse((self.folder / "a").exists())


if __name__ == "__main__":
    program.main()
