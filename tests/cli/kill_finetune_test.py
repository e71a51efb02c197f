"""Fine-tuning that is killed at any instant and resumed equals one that is not: adapters with dropout, packed rows.

20 kills: half of them after a random time, the others when a file of the start has appeared, such as the copy of the
base or the first checkpoint.
"""

import json
import time

import kill_test
import program
from program import TEXT

KILLS = 10
KILLS_OF_STARTS = 10
STEPS = 150
LETTERS = "".join(map(chr, range(32, 127)))


def conversations(count):
    lines = [{"messages": [{"role": "user", "content": f"{n} + {n % 7}"},
                           {"role": "assistant", "content": f"{n + n % 7}."}]} for n in range(count)]
    return "".join(json.dumps(line) + "\n" for line in lines)


class KillFinetune(kill_test.Kill):
    command = "finetune"
    steps = STEPS
    seen = 0  # kills that came before the run was complete, after its base had appeared

    @property
    def settings(self):
        if not (self.folder / "chats.jsonl").exists():
            self.train("base", self.write("text.txt", LETTERS + TEXT), "--context", "160", "--steps", "2", "--set",
                       "model.dropout=0.1")
            self.base = program.contents(self.folder / "base")
            self.write("chats.jsonl", conversations(40))
        return ("--base", self.path("base"), self.path("chats.jsonl"), "--chat-template", "chatml", "--rank", "4",
                "--steps", STEPS, "--set", "lora.dropout=0.1", "--set", "model.dropout=0.1", "--set",
                "checkpoint.interval=2", "--set", "train.validation_interval=50")

    def when_it_starts(self, run, process):
        name = self.random.choice(("base", "base/step-00000002", "tokenizer.json", "chat_template.jinja", "checkpoints",
                                   "checkpoints/step-00000000", "config.toml", "base/.tmp"))
        while process.poll() is None:
            folder = self.folder / run / name
            if any(folder.parent.glob(".tmp*")) if name.endswith(".tmp") else folder.exists():
                break
            time.sleep(5e-5)
        self.seen += (self.folder / run / "base").exists() and not (self.folder / run / "config.toml").exists()

    def check(self, run):
        super().check(run)
        self.assertEqual(self.names(run + "/base"), self.names("whole/base"))
        self.assertEqual(program.contents(self.folder / "base"), self.base)

    def test_killed_runs_end_bit_identically(self):
        self.time_of("one", *self.settings, "--threads", "1", "--recompute", "every-layer")
        self.assertEqual(self.hash("one"), self.expected)
        runs = self.survive("random", KILLS, self.after_a_time)
        for _ in range(KILLS_OF_STARTS):  # one kill for each run, since a start happens once
            runs += self.survive(f"start-{runs}", 1, self.when_it_starts)
        print(f"{KILLS + KILLS_OF_STARTS} kills in {runs} runs of {self.duration:.2f} s, {self.before_start} before "
              f"there was a config.toml, {self.seen} of them with a base")


if __name__ == "__main__":
    program.main()
