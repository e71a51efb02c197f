"""quern export: a directory for Hugging Face transformers. tests/python/checkpoints_test.py looks at the files."""

import json
import pathlib
import struct

import program

SETTINGS = ("--steps", "9", "--set", "checkpoint.interval=3", "--set", "checkpoint.keep=9")


def tensors(folder):
    """The header of model.safetensors without its metadata, and the values."""
    data = (pathlib.Path(folder) / "model.safetensors").read_bytes()
    length, = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + length])
    header.pop("__metadata__")
    return header, data[8 + length:]


class Export(program.ProgramTest):
    def test_a_run_a_checkpoint_and_a_flag_name_the_same(self):
        self.train("run", *SETTINGS)
        newest = self.folder / "run/checkpoints/step-00000009"
        line = "step 9 of {}, in {}: model.safetensors, config.json, tokenizer.json, tokenizer_config.json\n"
        for number, arguments in enumerate(((self.path("run"),), ("--run", self.path("run")), (newest,),
                                            (self.path("run"), "--checkpoint", "9"), (self.path("run"), "--checkpoint", newest),
                                            (self.path("run"), "--checkpoint", "newest"))):
            out = self.path(f"out{number}")
            self.assertEqual(self.works("export", *arguments, "--out", out), line.format(self.path("run"), out))
            self.assertEqual(program.contents(out), program.contents(self.path("out0")))
        files, exported = program.contents(newest), program.contents(self.path("out0"))
        for name in exported.keys() - {"model.safetensors"}:
            self.assertEqual(files[name], exported[name])
        self.assertEqual(tensors(newest), tensors(self.path("out0")))

    def test_another_checkpoint(self):
        self.train("run", *SETTINGS)
        found = json.loads(self.works("export", self.path("run"), "--checkpoint", "3", "--out", self.path("a"), "--json"))
        self.assertEqual((found["step"], found["out"]), (3, self.path("a")))
        self.assertEqual(set(found["files"]), set(program.contents(self.path("a"))))
        best = json.loads(self.works("export", self.path("run"), "--checkpoint", "best", "--out", self.path("b"), "--json"))
        self.assertEqual(best["step"], self.info("run")["best_step"])

    def test_nothing_is_replaced(self):
        self.train("run", *SETTINGS)
        before = program.contents(self.folder)
        self.fails("export", self.path("run"), "--out", self.path("run"), says=["expected a new or empty folder, found "])
        self.fails("export", self.path("run"), "--out", self.path("run/config.toml"),
                   says=["config.toml: expected a new or empty folder, found a file"])
        self.assertEqual(program.contents(self.folder), before)

    def test_a_model_that_transformers_lacks(self):
        self.train("rotary", *SETTINGS, "--steps", "1", "--set", "model.positions=rotary")
        self.fails("export", self.path("rotary"), "--out", self.path("out"),
                   says=["expected a model that transformers can open", "found model.positions=rotary"])
        self.assertFalse((self.folder / "out").exists())
        config = json.loads((self.folder / "rotary/checkpoints/step-00000001/config.json").read_text())
        self.assertEqual((config["model_type"], config["positions"]), ("quern", "rotary"))

    def test_bad_usage(self):
        self.train("run", *SETTINGS)
        run, out = self.path("run"), ("--out", self.path("out"))
        self.fails("export", *out, says=["export: expected RUN, a trained run"])
        self.fails("export", run, says=["export: expected OUT, a new directory or file"])
        self.fails("export", run, "--run", run, *out, says=["expected RUN or --run DIR, found both"])
        self.fails("export", run, "--checkpoint", "4", *out,
                   says=["run: checkpoint: expected newest, best, the path of one, or one of the saved steps 3, 6, 9, found '4'"])
        self.fails("export", self.path("none"), *out, says=["none: expected a run with a config.toml, found none"])
        model = self.folder / "run/checkpoints/step-00000006/model.safetensors"
        model.write_bytes(model.read_bytes()[:-1])
        self.fails("export", run, "--checkpoint", "6", *out, says=["step-00000006/model.safetensors: expected "])
        self.assertFalse((self.folder / "out").exists())


if __name__ == "__main__":
    program.main()
