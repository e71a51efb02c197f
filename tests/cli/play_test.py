"""Playing against a network in the terminal, from a pipe."""

import re
import subprocess

import program

TICTACTOE = ("tictactoe", "--steps", "40", "--set", "selfplay.generation_steps=20", "--set", "selfplay.generation_games=20", "--set",
             "optimizer.warmup=2", "--set", "selfplay.rating_interval=0")
CHESS = ("chess", "--steps", "1", "--batch", "4", "--set", "selfplay.generation_steps=1", "--set", "selfplay.generation_games=1",
         "--set", "selfplay.simulations=1", "--set", "selfplay.cheap_simulations=1", "--set", "optimizer.warmup=0", "--set",
         "model.layers=1", "--set", "selfplay.rating_interval=0")

EMPTY = ". . .\n. . .\n. . .\n"


class Play(program.ProgramTest):
    @classmethod
    def setUpClass(cls):
        folder = program.temporary_folder()
        cls.addClassCleanup(folder.cleanup)
        cls.ttt, cls.chess, cls.text = (f"{folder.name}/{name}" for name in ("ttt", "chess", "text"))
        for arguments in (("selfplay", *TICTACTOE, "--run", cls.ttt), ("selfplay", *CHESS, "--run", cls.chess),
                          ("train", *program.SMALL, "--steps", "0", "--run", cls.text)):
            run = program.quern(*arguments)
            assert run.returncode == 0, run

    def play(self, *arguments, lines):
        """What is printed for each line that is typed, first what is printed before all of them."""
        text = self.works("play", *arguments, input="".join(f"{line}\n" for line in lines))
        parts = text.split("> ")
        self.assertEqual(len(parts), len(lines) + (1 if "/quit" in lines else 2), text)
        return parts

    def test_a_game(self):
        parts = self.play(self.ttt, "--simulations", "100", lines=["5"])
        self.assertEqual(parts[0], f"tictactoe against {self.ttt}@40; you are the first player. Type moves such as 5, "
                                   f"or /help.\n{EMPTY}")
        said = re.match(r"It plays (\d); it expects to win (\d+) %, draw (\d+) %, lose (\d+) %\n", parts[1])
        self.assertAlmostEqual(sum(map(int, said.groups()[1:])), 100, delta=2)
        board = parts[1].splitlines()[1:]
        self.assertEqual(board[1][2], "X")
        square = int(said[1]) - 1
        self.assertEqual(board[square // 3][square % 3 * 2], "O")
        self.assertEqual(parts[2], "\n")  # the end of the input
        self.assertEqual(self.play("tictactoe", "--run", self.ttt, "--simulations", "100", lines=["5"]), parts)

    def test_the_end_of_a_game(self):
        won = self.play(self.ttt, "--position", "1425", lines=["3"])
        self.assertIn("You win after 5 moves. /new starts another game.", won[1])
        drawn = self.play(self.ttt, "--position", "12358647", lines=["9"])
        self.assertIn("A draw after 9 moves.", drawn[1])
        lost = self.play(self.ttt, "--position", "15274", "--side", "second", lines=["9"])
        self.assertIn("You lose after 7 moves.", lost[1])

    def test_the_second_player(self):
        parts = self.play(self.ttt, "--side", "second", "--simulations", "20", lines=["/new"])
        self.assertTrue(parts[0].splitlines()[0].endswith("you are the second player. Type moves such as 5, or /help."))
        self.assertIn("It plays ", parts[0])
        self.assertEqual(parts[1], parts[0])
        parts = self.play(self.ttt, "--side", "alternate", "--simulations", "20", lines=["/new", "/new"])
        self.assertEqual(["It plays " in part for part in parts], [False, True, False, False])

    def test_commands(self):
        lines = ["/help", "/hint", "/board", "5", "/undo", "", "/quit"]
        parts = self.play(self.ttt, "--simulations", "200", lines=lines)
        for command in ("/help", "/hint", "/board", "/undo", "/new", "/quit"):
            self.assertRegex(parts[1], rf"(?m)^  {command} +\w")
        hints = parts[2].splitlines()
        self.assertEqual(len(hints), 5)
        shares = []
        for hint in hints:
            found = re.fullmatch(r"  (\d) +(\d+) % of the visits, result ([+-]\d\.\d\d): win \d+ %, draw \d+ %, loss \d+ %", hint)
            shares.append(int(found[2]))
        self.assertEqual(shares, sorted(shares, reverse=True))
        self.assertEqual(parts[3], EMPTY + "\n")
        self.assertEqual((parts[5], parts[6]), (EMPTY, ""))

    def test_undo_goes_back_to_the_moves_before(self):
        parts = self.play(self.ttt, "--position", "51", "--simulations", "20", lines=["9", "/undo", "/board"])
        self.assertEqual(parts[2] + "51\n", parts[3])
        won = self.play(self.ttt, "--position", "1425", lines=["3", "/undo", "/board"])
        self.assertIn("You win", won[1])
        self.assertTrue(won[3].endswith("\n1425\n"))

    def test_bad_lines_do_not_end_the_game(self):
        run = program.quern("play", self.ttt, "--simulations", "5", input="x\n10\n5\n5\n/udno\n/what\n/undo\n/undo\n/board\n")
        self.assertEqual(run.returncode, 0)
        errors = run.stderr.splitlines()
        self.assertEqual(len(errors), 6, errors)
        self.assertIn("[tictactoe] move: expected one of 1, 2, 3, 4, 5, 6, 7, 8, 9, found 'x'", errors[0])
        self.assertIn("found '10'", errors[1])
        self.assertIn("found '5'", errors[2])
        self.assertEqual(errors[3], "quern: unknown command '/udno'; did you mean /undo?")
        self.assertIn("unknown command '/what'; /help lists the commands", errors[4])
        self.assertEqual(errors[5], "quern: /undo: expected a move of yours, found none yet")
        run = program.quern("play", self.ttt, "--position", "1425", input="3\n6\n/hint\n")
        self.assertIn("expected no move, because the game is over, found '6'", run.stderr)
        self.assertIn("/hint: expected a game, found one that is over", run.stderr)

    def test_chess(self):
        parts = self.play(self.chess, "--simulations", "3", lines=["e2e4", "/undo", "/board"])
        self.assertIn("1 R N B Q K B N R\n  a b c d e f g h\n", parts[0])
        self.assertRegex(parts[1], r"^It plays [a-h][78][a-h][56];|^It plays [bg]8[a-h]6;")
        self.assertTrue(parts[3].endswith("rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1\n"))
        mate = "6k1/5ppp/8/8/8/8/8/4R1K1 w - - 0 1"
        parts = self.play(self.chess, "--position", mate, lines=["e1e8"])
        self.assertIn("You win after 1 moves.", parts[1])
        black = self.play(self.chess, "--position", mate, "--side", "second", "--simulations", "1", lines=[])
        self.assertIn("It plays ", black[0])

    def test_perfect_play(self):
        parts = self.play("tictactoe", "--against", "perfect", lines=["1", "/hint"])
        self.assertTrue(parts[1].startswith("It plays 5\n"), parts[1])
        self.assertNotIn("win", parts[2])
        parts = self.play("tictactoe", "--against", "perfect", "--position", "1524", lines=["/hint"])
        self.assertEqual(parts[1], "  3     win\n  6     draw\n  7     loss\n  8     loss\n  9     loss\n")
        won = self.play("connect4", "--against", "perfect", "--position", "112233", lines=["/hint", "4"])
        self.assertTrue(won[1].startswith("  4     win\n"), won[1])
        self.assertIn("You win after 7 moves.", won[2])

    def test_bad_usage(self):
        self.fails("play", says=["expected a run, as in `quern play runs/four`"])
        self.fails("play", self.text, says=["expected a run of `quern selfplay`, found one that trains on text"])
        self.fails("play", "connect4", self.ttt, says=["expected a run of `quern selfplay connect4`, found one of tictactoe"])
        self.fails("play", self.ttt, self.ttt, says=["expected one run"])
        self.fails("play", self.path("none"), says=["none"])
        self.fails("play", f"{self.ttt}@7", says=["found '7'"])
        self.fails("play", self.ttt, "--position", "99", says=["[tictactoe] position '99'"])
        self.fails("play", self.ttt, "--position", "14253", says=["expected a game that is not over"])
        self.fails("play", self.chess, "--position", "8/8", says=["[chess]"])
        self.fails("play", self.ttt, "--side", "left", says=["--side", "expected first, second or alternate"])
        self.fails("play", self.ttt, "--against", "perfect", says=["--against perfect: expected tictactoe or connect4"])
        self.fails("play", "chess", "--against", "perfect", says=["expected a game with a solver", "'chess'"])
        self.fails("play", self.ttt, "--against", "stockfish", says=["--against"])

    def test_no_input(self):
        run = subprocess.run([program.QUERN, "play", self.ttt], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                             timeout=program.TIMEOUT, check=False)
        self.assertEqual((run.returncode, run.stderr), (0, ""))


if __name__ == "__main__":
    program.main()
