"""Measuring the strength of networks that have learned a game."""

import json

import program

# Seconds to learn nothing: the smallest run there is.
TICTACTOE = ("tictactoe", "--steps", "40", "--set", "selfplay.generation_steps=20", "--set", "selfplay.generation_games=20", "--set",
             "optimizer.warmup=2", "--set", "checkpoint.interval=20", "--set", "selfplay.rating_interval=0")
CONNECT4 = ("connect4", "--steps", "2", "--batch", "8", "--set", "selfplay.generation_steps=2", "--set", "selfplay.generation_games=2",
            "--set", "selfplay.simulations=4", "--set", "optimizer.warmup=1", "--set", "model.layers=1", "--set",
            "selfplay.rating_interval=0")
CHESS = ("chess", "--steps", "1", "--batch", "4", "--set", "selfplay.generation_steps=1", "--set", "selfplay.generation_games=1",
         "--set", "selfplay.simulations=1", "--set", "selfplay.cheap_simulations=1", "--set", "optimizer.warmup=0", "--set",
         "model.layers=1", "--set", "selfplay.rating_interval=0")


class Arena(program.ProgramTest):
    @classmethod
    def setUpClass(cls):
        folder = program.temporary_folder()
        cls.addClassCleanup(folder.cleanup)
        cls.ttt, cls.four, cls.chess, cls.text = (f"{folder.name}/{name}" for name in ("ttt", "four", "chess", "text"))
        for arguments in (("selfplay", *TICTACTOE, "--run", cls.ttt), ("selfplay", *CONNECT4, "--run", cls.four),
                          ("selfplay", *CHESS, "--run", cls.chess),
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

    def test_mates_in_one_that_are_missed(self):
        result = self.json(self.chess, "--mistakes", "--positions", "40", "--simulations", "1")["checkpoints"][0]["sets"]["mate in 1"]
        self.assertEqual((result["positions"], result["search_mistakes"]), (40, 0))  # the rules prove a mate in one
        self.assertGreater(result["network_mistakes"], 0.5)  # it has learned nothing
        text = self.works("arena", self.chess, "--mistakes", "--positions", "40", "--simulations", "0").splitlines()
        self.assertEqual(len(text), 2)
        self.assertEqual(text[1].count(f"{100 * result['network_mistakes']:.1f} %"), 2)

    def test_a_match_against_random_moves(self):
        text = self.works("arena", self.ttt, "--against", "random", "--games", "30").splitlines()
        self.assertEqual(text[0], f"{self.ttt}@40 against random moves")
        self.assertEqual(text[1].split(), ["games", "wins", "draws", "losses", "score"])
        found = self.json(self.ttt, "--against", "random", "--games", "30")
        for line, name in zip(text[2:4], ("moving_first", "moving_second")):
            counts = found[name]
            self.assertEqual([int(word) for word in line.split()[2:6]],
                             [15, counts["wins"], counts["draws"], counts["losses"]])
        self.assertEqual(found["wins"] + found["draws"] + found["losses"], 30)
        self.assertGreater(found["score"], 0.7)
        self.assertLess(found["score_interval"][0], found["score"])
        self.assertRegex(text[5], r"^Elo difference: .* with 95 % confidence")
        self.assertEqual(self.json(self.ttt, "--against", "random", "--games", "30", "--threads", "1"), found)
        self.assertNotEqual(self.json(self.ttt, "--against", "random", "--games", "30", "--seed", "7"), found)

    def test_nobody_beats_perfect_play(self):
        found = self.json(self.ttt, "--against", "perfect", "--games", "40", "--simulations", "0")
        self.assertEqual(found["wins"], 0)
        self.assertGreater(found["losses"], 0)
        self.assertEqual((found["against"], found["opening_moves"]), ("perfect", 0))
        many = self.json(self.ttt, "--against", "perfect", "--games", "40", "--simulations", "1000")
        self.assertGreaterEqual(many["draws"], 36)
        found = self.json(self.four, "--against", "perfect", "--games", "2", "--opening-moves", "26", "--simulations", "3")
        self.assertEqual(found["wins"] + found["draws"] + found["losses"], 2)

    def test_a_match_of_checkpoints(self):
        found = self.json(self.ttt, "--against", f"{self.ttt}@20", "--games", "20", "--simulations", "10")
        self.assertEqual(found["against"], {"run": self.ttt, "step": 20})
        back = self.json(f"{self.ttt}@20", "--against", self.ttt, "--games", "20", "--simulations", "10")
        self.assertEqual((back["wins"], back["draws"], back["losses"]), (found["losses"], found["draws"], found["wins"]))
        same = self.json(self.ttt, "--against", self.ttt, "--games", "20", "--simulations", "10")
        self.assertEqual((same["score"], same["elo"]), (0.5, 0))

    def test_bad_usage_of_matches(self):
        self.fails("arena", self.ttt, says=["expected --against RUN, random or perfect, or --mistakes"])
        self.fails("arena", self.ttt, "--against", self.four, says=["expected a run of `quern selfplay tictactoe`"])
        self.fails("arena", self.ttt, "--against", self.text, says=["found one that trains on text"])
        self.fails("arena", self.ttt, "--against", "rndom", says=["rndom"])
        self.fails("arena", self.ttt, self.ttt, "--against", "random", says=["expected one run", "found 2 runs"])
        self.fails("arena", self.ttt, "--against", "random", "--games", "3", says=["--games: expected an even number"])
        self.fails("arena", self.ttt, "--against", "random", "--games", "0", says=["--games", "from 2"])
        self.fails("arena", self.ttt, "--against", "random", "--all", says=["--against: expected no --all"])
        self.fails("arena", self.ttt, "--mistakes", "--games", "4", says=["--mistakes: expected no --games"])
        self.fails("arena", self.ttt, "--against", "random", "--opening-moves", "9", says=["opening_moves: expected so few"])

    def test_bad_usage_of_mistakes(self):
        self.fails("arena", says=["expected a run, as in `quern arena runs/four"])
        self.fails("arena", self.text, "--mistakes", says=["expected a run of `quern selfplay`, found one that trains on text"])
        self.fails("arena", self.ttt, self.four, "--mistakes", says=["expected a run of `quern selfplay tictactoe`", "connect4"])
        self.fails("arena", self.path("none"), "--mistakes", says=["none"])
        self.fails("arena", f"{self.ttt}@30", "--mistakes", says=["saved steps 20, 40, found '30'"])
        self.fails("arena", f"{self.ttt}@20", "--mistakes", "--all", says=["--all: expected a run, found the checkpoint"])
        self.fails("arena", self.ttt, "--mistakes", "--positions", "5", says=["--positions: expected a run of connect4 or chess"])


if __name__ == "__main__":
    program.main()
