"""Runs in which something is damaged, changed or missing: one line says what, and no byte of them is touched."""

import hashlib
import json
import shutil

import program
from program import SMALL, TEXT


def resealed(state):
    """The text of a state.json with these fields and a checksum that is right for them."""
    state = {key: value for key, value in state.items() if key != "checksum"}
    body = json.dumps(state, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return json.dumps({**state, "checksum": hashlib.sha256(body.encode()).hexdigest()})


def temporary_name(rest):
    """The name of a file that is being written: it ends with the CRC-32C of what precedes that."""
    name = ".tmp-quern-" + rest
    crc = 0xFFFFFFFF
    for byte in name.encode():
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return f"{name}-{crc ^ 0xFFFFFFFF:08x}"


class Run(program.ProgramTest):
    """A run of nine steps with checkpoints at 3, 6 and 9, in which something is damaged."""

    def setUp(self):
        super().setUp()
        self.text = self.write("text.txt", TEXT)
        self.train("run", self.text, "--steps", "9", "--set", "checkpoint.interval=3", "--set", "checkpoint.keep=9",
                   "--set", "optimizer.schedule=constant")
        self.expected = self.hash("run")
        self.run_folder = self.folder / "run"
        self.newest = self.run_folder / "checkpoints/step-00000009"

    def resume_fails(self, says, **options):
        """Resume with more steps is refused, and every byte of the run is what it was; returns the contents."""
        before = program.contents(self.run_folder)
        self.fails("train", "--run", self.path("run"), "--resume", "--steps", "99", says=says, **options)
        self.assertEqual(program.contents(self.run_folder), before)
        return before

    def every_use_fails(self, says):
        self.resume_fails(says)
        for command in ("eval", "generate"):
            self.fails(command, "--run", self.path("run"), says=says)

    def damaged(self, path):
        """Gives the file in several damaged forms, then whole again."""
        whole = path.read_bytes()
        middle = len(whole) // 2
        flipped = whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1:]
        for damaged in (b"", whole[:-2], whole[:middle], flipped, whole + b"x"):
            path.write_bytes(damaged)
            yield
        path.unlink()
        yield
        path.write_bytes(whole)

    def test_a_damaged_checkpoint_is_named_and_skipped(self):
        for name in ("model.safetensors", "optimizer.safetensors", "state.json"):
            whole = (self.newest / name).read_bytes()
            for _ in self.damaged(self.newest / name):
                copy = shutil.copytree(self.run_folder, self.folder / "copy")
                printed = self.resume("copy")
                self.assertIn("warning: skipped", printed)
                self.assertIn(str(copy / "checkpoints/step-00000009" / name), printed)
                self.assertIn("resuming at step 7", printed)
                self.assertEqual(self.hash("copy"), self.expected)
                shutil.rmtree(copy)
            self.assertEqual((self.newest / name).read_bytes(), whole)

    def test_a_run_with_damaged_checkpoints_only_is_refused(self):
        for step in (3, 6):
            shutil.rmtree(self.run_folder / f"checkpoints/step-{step:08}")
        for name in ("model.safetensors", "optimizer.safetensors", "state.json"):
            for _ in self.damaged(self.newest / name):
                says = ["run: expected a complete checkpoint, found 1 damaged", f"step-00000009/{name}"]
                self.resume_fails(says)
                if name != "optimizer.safetensors":
                    for command in ("eval", "generate", "info"):
                        self.fails(command, "--run", self.path("run"), says=says)
        self.assertEqual(self.hash("run"), self.expected)
        self.resume("run")

    def test_a_state_with_a_good_checksum_and_bad_fields(self):
        state = json.loads((self.newest / "state.json").read_text())
        for change in ({"step": 8}, {"step": -1}, {"version": 2}, {"tokens": "many"}, {"files": {}}, {"data": 5},
                       {"random": {"generator": "dice", "seed": 1, "step": 9}},
                       {"files": {**state["files"], "model.safetensors": {"bytes": 1, "sha256": "00"}}}):
            (self.newest / "state.json").write_text(resealed({**state, **change}))
            run = program.quern("info", "--run", self.path("run"), "--json")
            self.assertEqual(json.loads(run.stdout)["step"], 6, change)
            self.assertRegex(run.stderr, r"\Aquern: warning: skipped [^\n]*state.json: [^\n]*expected[^\n]*\n\Z")
            self.assertNotIn("checksum", run.stderr)

    def test_damaged_config(self):
        config = self.run_folder / "config.toml"
        whole = config.read_text()
        for text, says in ((whole[:100] + "\0" + whole[100:], "config.toml:"), (whole + "\n[model", "config.toml:"),
                           (whole.replace("width = 32", "width = 'x'"), "model.width: expected a whole number"),
                           (whole.replace("width = 32", "width = 33"), "model.width: expected a multiple")):
            config.write_text(text)
            self.resume_fails([says])
        config.write_text(whole)
        self.resume("run")

    def test_damaged_tokenizer(self):
        tokenizer = self.run_folder / "tokenizer.json"
        whole = tokenizer.read_bytes()
        for damaged in (b"", b"[]", whole[:-3], whole.replace(b'"model"', b'"muddle"')):
            tokenizer.write_bytes(damaged)
            self.every_use_fails(["run/tokenizer.json", "expected"])
        tokenizer.write_bytes(whole)
        self.resume("run")

    def test_tokenizer_of_another_text(self):
        self.train("other", self.write("other.txt", TEXT + "\u00e4\u00f6\u00fc"), "--steps", "1")
        shutil.copy(self.folder / "other/tokenizer.json", self.run_folder / "tokenizer.json")
        self.every_use_fails(["model.safetensors: contains a different model: tensor 'wte.weight': expected", "found"])

    def test_folder_with_another_model(self):
        self.set_in_config("run", "width", 64)
        self.every_use_fails(["contains a different model: tensor", "expected F32 (", "64", "found F32 (", "32"])
        self.set_in_config("run", "width", 32)
        self.set_in_config("run", "layers", 2)
        self.every_use_fails(["contains a different model: expected tensor 'h.1."])
        self.set_in_config("run", "layers", 1)
        self.set_in_config("run", "seed", 5)
        self.resume_fails(["config.toml: train.seed: expected 1, as in its checkpoint, found 5"])
        self.set_in_config("run", "seed", 1)
        self.resume("run")

    def test_start_over_an_existing_run(self):
        before = program.contents(self.run_folder)
        again = ("train", *SMALL, "--steps", "3", "--run", self.path("run"))
        self.fails(*again, says=["run: holds a run already", "--resume"])
        self.assertEqual(program.contents(self.run_folder), before)
        (self.run_folder / "config.toml").unlink()
        self.fails(*again, says=["run: expected an empty folder, found checkpoints"])
        del before["config.toml"]
        self.assertEqual(program.contents(self.run_folder), before)

    def test_data_that_changed(self):
        says = ["text.txt: changed since the run was started: expected", "tokens with hash", "found"]
        self.set_in_config("run", "steps", 12)
        for text in (TEXT[:-1], TEXT + "\n", TEXT.replace("number 0", "number 1", 1)):
            self.write("text.txt", text)
            self.resume_fails(says)
            self.fails("eval", "--run", self.path("run"), says=says)
            self.works("generate", "--run", self.path("run"), "--tokens", "3")  # needs no data
        (self.folder / "text.txt").unlink()
        self.resume_fails(["text.txt: expected a file or folder, found nothing"])
        self.write("text.txt", TEXT)
        self.assertIn("done: 12 steps", self.resume("run"))

    def test_stories_of_another_length(self):
        self.train("stories", "--steps", "2")
        self.set_in_config("stories", "stories_bytes", 60000)
        self.fails("train", "--run", self.path("stories"), "--resume", "--steps", "3",
                   says=["stories: changed since the run was started: expected 50196 tokens with hash", "found 60"])

    def test_leftovers_of_a_kill_are_removed(self):
        left = self.run_folder / temporary_name("config.toml-1-1")
        left.write_text("half")
        side = self.run_folder / "checkpoints" / temporary_name("step-00000012-1-1")
        side.mkdir()
        (side / "model.safetensors").write_text("half")
        self.set_in_config("run", "steps", 12)
        self.resume("run")
        self.assertFalse(left.exists() or side.exists())


if __name__ == "__main__":
    program.main()
