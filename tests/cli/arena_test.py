"""Measuring the strength of networks that have learned a game."""

import json

import program

# Seconds to learn nothing: the smallest run there is.
TICTACTOE = ("tictactoe", "--steps", "40", "--set", "selfplay.generation_steps=20", "--set", "selfplay.generation_games=20", "--set",
             "optimizer.warmup=2", "--set", "checkpoint.interval=20", "--set", "selfplay.rating_interval=0")
CONNECT4 = ("connect4", "--steps", "2", "--batch", "8", "--set", "selfplay.generation_steps=2", "--set", "selfplay.generation_games=2",
            "--set", "selfplay.simulations=4", "--set", "optimizer.warmup=1", "--set", "model.layers=1", "--set",
            "selfplay.rating_interval=0")


class Arena(program.ProgramTest):
    @classmethod
    def setUpClass(cls):
        folder = program.temporary_folder()
        cls.addClassCleanup(folder.cleanup)
        cls.ttt, cls.four, cls.text = (f"{folder.name}/{name}" for name in ("ttt", "four", "text"))
        for arguments in (("selfplay", *TICTACTOE, "--run", cls.ttt), ("selfplay", *CONNECT4, "--run", cls.four),
                          ("train", *program.SMALL, "--steps", "0", "--run", cls.text)):
            run = program.quern(*arguments)
            assert run.returncode == 0, run

    def json(self, *arguments):
        return json.loads(self.works("arena", *arguments, "--json"))

    def test_mistakes_of_every_checkpoint(self):
        text = self.works("arena", self.ttt, "--mistakes", "--all", "--simulations", "20").splitlines()
        self.assertRegex(text[0], r"^checkpoint +mistakes: network +20 simulations +result foreseen$")
        self.assertEqual([line.split()[0] for line in text[1:]], [f"{self.ttt}@20", f"{self.ttt}@40"])
        found = self.json(self.ttt, "--mistakes", "--all", "--simulations", "20")
        self.assertEqual((found["game"], found["simulations"]), ("tictactoe", 20))
        self.assertEqual([(entry["run"], entry["step"]) for entry in found["checkpoints"]], [(self.ttt, 20), (self.ttt, 40)])
        for entry, line in zip(found["checkpoints"], text[1:]):
            result = entry["sets"]["all"]
            self.assertEqual(result["positions"], 4520)
            shown = [f"{100 * result[key]:.1f}" for key in ("network_mistakes", "search_mistakes", "result_foreseen")]
            self.assertEqual([word for word in line.split()[1:] if word != "%"], shown)
            self.assertLess(result["search_mistakes"], result["network_mistakes"])
        newest = self.json("--run", self.ttt, "--mistakes", "--simulations", "20", "--threads", "1")
        self.assertEqual(newest["checkpoints"], found["checkpoints"][1:])
        self.assertEqual(self.json(f"{self.ttt}@20", "--run", self.ttt, "--mistakes", "--simulations", "20"), found)

    def test_more_simulations_make_fewer_mistakes(self):
        few, many = (self.json(self.ttt, "--mistakes", "--simulations", count)["checkpoints"][0]["sets"]["all"]
                     for count in ("0", "300"))
        self.assertEqual(few["search_mistakes"], few["network_mistakes"])
        self.assertEqual(many["network_mistakes"], few["network_mistakes"])
        self.assertLess(many["search_mistakes"], 0.02)

    def test_mistakes_in_connect_four(self):
        arguments = (self.four, "--mistakes", "--positions", "3", "--simulations", "5")
        found = self.json(*arguments)
        self.assertEqual(list(found["checkpoints"][0]["sets"]), ["begin", "middle", "end"])
        self.assertEqual(found["checkpoints"][0]["sets"]["begin"]["positions"], 3)
        text = self.works("arena", *arguments).splitlines()
        self.assertEqual(text[1].split(), ["checkpoint"] + ["begin", "middle", "end"] * 3)
        self.assertEqual(len(text), 3)

    def test_bad_usage_of_mistakes(self):
        self.fails("arena", says=["expected a run, as in `quern arena runs/four"])
        self.fails("arena", self.text, "--mistakes", says=["expected a run of `quern selfplay`, found one that trains on text"])
        self.fails("arena", self.ttt, self.four, "--mistakes", says=["expected a run of `quern selfplay tictactoe`", "connect4"])
        self.fails("arena", self.path("none"), "--mistakes", says=["none"])
        self.fails("arena", f"{self.ttt}@30", "--mistakes", says=["saved steps 20, 40, found '30'"])
        self.fails("arena", f"{self.ttt}@20", "--mistakes", "--all", says=["--all: expected a run, found the checkpoint"])
        self.fails("arena", self.ttt, "--mistakes", "--positions", "5", says=["--positions: expected a run of connect4"])


if __name__ == "__main__":
    program.main()
