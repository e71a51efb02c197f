"""The Python package on an ordinary day: the calls as typed, and what they give or say."""

import inspect
import json
import os
import pathlib
import pty
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cli"))

import numpy as np
import program
import quern

SMALL = {"model.layers": 1, "model.heads": 2, "model.width": 32, "model.context": 32, "train.batch": 8,
         "data.stories_bytes": 50_000, "train.validation_batches": 1, "optimizer.warmup": 2}


class Python(unittest.TestCase):
    def setUp(self):
        folder = program.temporary_folder()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.folder)

    def train(self, **arguments):
        return quern.train(**{"out": "runs/first", "steps": 20, "set": SMALL, **arguments})

    def refuses(self, call, says):
        with self.assertRaises(quern.Error) as caught:
            call()
        self.assertEqual(str(caught.exception), says)

    def in_terminal(self, code):
        """What a person sees who runs this program in a terminal."""
        ours, theirs = pty.openpty()
        process = subprocess.Popen([sys.executable, "-B", "-c", f"import quern\nSMALL = {SMALL}\n{code}"], stdout=theirs,
                                   stderr=theirs)
        os.close(theirs)
        text = b""
        try:
            while part := os.read(ours, 65536):
                text += part
        except OSError:  # how a terminal ends
            pass
        os.close(ours)
        self.assertEqual(process.wait(60), 0, text)
        return text.decode()

    # Training

    def test_a_progress_bar_in_a_terminal(self):
        text = self.in_terminal("quern.train(out='runs/first', steps=20, set=SMALL)")
        self.assertRegex(text, r"runs/first \[#{20}\] 20/20  loss \d\.\d{3}  validation \d\.\d{3}  [\d,]+ tokens/s  took 0m\d\ds\r\n$")

    def test_no_progress_bar_if_unwanted(self):
        self.assertEqual(self.in_terminal("quern.train(out='runs/first', steps=20, set=SMALL, progress=False)"), "")

    def test_none_in_a_log_unless_wanted(self):
        for progress, shown in (("None", False), ("True", True)):
            done = subprocess.run([sys.executable, "-B", "-c", f"import quern; quern.train(out='{progress}', steps=20,"
                                   f" set={SMALL}, progress={progress})"], capture_output=True, text=True)
            self.assertEqual((done.returncode, "20/20" in done.stderr), (0, shown))

    def test_stop_when_the_loss_is_low_enough_and_resume(self):
        whole = self.train(out="whole")
        stopped = self.train(on_step=lambda step: np.float64(step.step) < 7)  # numpy.False_ at step 7
        self.assertEqual((stopped.step, stopped.finished), (7, False))
        self.assertEqual(self.train(resume=True).weights_hash, whole.weights_hash)

    def test_stop_by_returning_0_but_not_by_returning_nothing(self):
        self.assertEqual(self.train(out="a", on_step=lambda step: 0).step, 1)
        self.assertEqual(self.train(out="b", on_step=lambda step: None).step, 20)

    # Loading

    def test_any_checkpoint(self):
        self.train(set={**SMALL, "checkpoint.interval": 10})
        self.assertEqual(quern.load("runs/first").step, 20)
        self.assertEqual(quern.load("runs/first", checkpoint=10).step, 10)
        self.assertIn(quern.load("runs/first", checkpoint="best").step, (10, 20))
        self.assertEqual(quern.load("runs/first/checkpoints/step-00000010").step, 10)
        self.refuses(lambda: quern.load("runs/first", checkpoint=15),
                     "[run] runs/first: checkpoint: expected newest, best, the path of one, or one of the saved steps 10, 20, "
                     "found '15'")

    def test_the_weights_as_numpy(self):
        model = quern.load(self.train().path)
        weights = model.state_dict()
        self.assertEqual(weights["wte.weight"].shape, (model.vocabulary, 32))
        self.assertEqual({array.dtype for array in weights.values()}, {np.dtype("float32")})

    def test_a_folder_for_transformers(self):
        model = quern.load(self.train(set={**SMALL, "data.tokenizer": "bpe", "data.vocabulary": 300}).path)
        out = model.export("exported")
        self.assertEqual({path.name for path in out.iterdir()},
                         {"model.safetensors", "config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json"})
        self.assertEqual(json.loads((out / "tokenizer_config.json").read_text())["tokenizer_class"], "PreTrainedTokenizerFast")
        self.refuses(lambda: model.export("runs"),
                     "[export] runs: expected a new or empty folder, found 'first' in it; choose another folder")
        done = program.quern("export", "runs/first", "--checkpoint", "best", "--out", "again")
        self.assertEqual((done.returncode, done.stdout),
                         (0, "step 20 of runs/first, in again: model.safetensors, config.json, generation_config.json, "
                             "tokenizer.json, tokenizer_config.json\n"))

    # Mistakes

    def test_forgotten_and_misspelt_arguments(self):
        self.refuses(lambda: quern.train(), "train: expected out=..., found no such argument")
        self.refuses(lambda: quern.train(out="x", step=9), "train: expected the name of an argument, found 'step'; did you mean steps?")
        self.refuses(lambda: quern.train(out="x", batch=9),
                     "train: expected the name of an argument, found 'batch'; did you mean set={\"train.batch\": ...}?")

    def test_wrong_types(self):
        self.refuses(lambda: quern.load(3), "load: run: expected a path, found 3")
        self.refuses(lambda: quern.train(out="x", resume="yes"), "train: resume: expected True or False, found 'yes'")
        self.refuses(lambda: quern.ReplayBuffer({"x": "int32"}, 10, True),
                     "ReplayBuffer: expected at most 2 positional arguments (columns and capacity), found 3; "
                     "name the others, as in prioritised=...")

    def test_advice_for_python(self):
        self.train()
        self.refuses(self.train, f"[run] {self.folder / 'runs/first'}: holds a run already; resume it (resume=True) or choose "
                                 "another folder")

    # Looking things up

    def test_signatures_and_help(self):
        self.assertEqual(str(inspect.signature(quern.load)), "(run, *, checkpoint=None)")
        self.assertEqual(str(inspect.signature(quern.Model.encode)), "(self, text)")
        self.assertTrue(quern.load.__doc__.startswith("Loads a trained model"))


if __name__ == "__main__":
    program.main()
