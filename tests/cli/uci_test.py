"""quern uci, as a graphical interface talks to it."""

import random
import re
import subprocess
import threading
import time

import program

CHESS = ("chess", "--steps", "1", "--batch", "4", "--set", "selfplay.generation_steps=1", "--set", "selfplay.generation_games=1",
         "--set", "selfplay.simulations=1", "--set", "selfplay.cheap_simulations=1", "--set", "optimizer.warmup=0", "--set",
         "model.layers=1", "--set", "model.width=32", "--set", "selfplay.rating_interval=0")

START = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1"
MATE = "6k1/5ppp/8/8/8/8/8/4R1K1 w - - 0 1"
INFO = re.compile(r"info depth \d+ score (cp -?\d+|mate -?\d+)( wdl \d+ \d+ \d+)? nodes \d+ nps \d+ time \d+ pv( [a-h][1-8][a-h][1-8][nbrq]?)+")


class Engine:
    """A process of quern uci. Lines are read by a thread, so that a test can wait for them with a limit."""

    def __init__(self, *arguments):
        self.process = program.start("uci", *arguments, stdin=subprocess.PIPE)
        self.lines, self.arrived = [], threading.Condition()
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            with self.arrived:
                self.lines.append(line.rstrip("\n"))
                self.arrived.notify()

    def say(self, *lines):
        self.process.stdin.write("".join(f"{line}\n" for line in lines))
        self.process.stdin.flush()

    def until(self, start, seconds=60):
        """The lines up to the next one that starts with `start`."""
        with self.arrived:
            found = []
            deadline = time.monotonic() + seconds
            while not found or not found[-1].startswith(start):
                while not self.lines:
                    if not self.arrived.wait(deadline - time.monotonic()):
                        raise TimeoutError(f"no {start} after {found}")
                found.append(self.lines.pop(0))
            return found

    def best(self, *lines):
        self.say(*lines)
        return self.until("bestmove")[-1].split()[1]

    def close(self):
        self.process.stdin.close()
        code = self.process.wait(timeout=60)
        self.reader.join(timeout=60)
        error = self.process.stderr.read()
        self.process.stdout.close()
        self.process.stderr.close()
        return code, error


class Uci(program.ProgramTest):
    @classmethod
    def setUpClass(cls):
        folder = program.temporary_folder()
        cls.addClassCleanup(folder.cleanup)
        cls.chess, cls.text = f"{folder.name}/chess", f"{folder.name}/text"
        for arguments in (("selfplay", *CHESS, "--run", cls.chess), ("train", *program.SMALL, "--steps", "0", "--run", cls.text)):
            run = program.quern(*arguments)
            assert run.returncode == 0, run

    def engine(self, *arguments):
        engine = Engine(self.chess, *arguments)
        self.addCleanup(engine.process.kill)
        return engine

    def ends(self, engine):
        self.assertEqual(engine.close(), (0, ""))

    def test_it_introduces_itself(self):
        engine = self.engine("--nodes", "7")
        engine.say("uci", "isready")
        lines = engine.until("readyok")
        self.assertRegex(lines[0], r"^id name Quern \d+\.\d+\.\d+ chess@1$")
        self.assertEqual(lines[-2:], ["uciok", "readyok"])
        self.assertIn("option name Nodes type spin default 7 min 1 max 1000000000", lines)
        self.assertIn("option name UCI_ShowWDL type check default false", lines)
        engine.say("quit")
        self.ends(engine)

    def test_a_search_ends_after_its_nodes(self):
        engine = self.engine("--nodes", "9")
        for command, nodes in (("go nodes 25", 25), ("go", 9), ("go depth 3", 9), ("go nodes 0", 1)):
            engine.say("ucinewgame", "position startpos", command)
            lines = engine.until("bestmove")
            self.assertRegex(lines[-2], INFO)
            self.assertIn(f" nodes {nodes} ", lines[-2])
            self.assertEqual(lines[-1].split()[1], lines[-2].split(" pv ")[1].split()[0])
        engine.say("setoption name nodes value 11", "go")
        self.assertIn(" nodes 11 ", engine.until("bestmove")[-2])
        self.ends(engine)

    def test_the_same_game_gives_the_same_moves(self):
        lines = ["ucinewgame", "position startpos moves d2d4", "go nodes 40"]
        engine = self.engine()
        first = engine.best(*lines)
        self.assertEqual(engine.best(*lines), first)
        self.ends(engine)

    def test_mates_and_results(self):
        engine = self.engine()
        engine.say(f"position fen {MATE}", "setoption name UCI_ShowWDL value true", "go nodes 1000")
        lines = engine.until("bestmove")
        self.assertRegex(lines[-2], r"^info depth 1 score mate 1 wdl 1000 0 0 nodes 0 nps 0 time \d+ pv e1e8$")
        self.assertEqual(lines[-1], "bestmove e1e8")
        # Two rooks mate in two, and the king that they chase is mated.
        engine.say("position fen 7k/8/8/8/8/1R6/R7/K7 w - - 0 1", "go nodes 200000 movetime 60000")
        lines = engine.until("bestmove")
        self.assertIn(" score mate 2 ", lines[-2])
        engine.say("position fen 7k/R7/8/8/8/1R6/8/K7 b - - 0 1", "go nodes 200000 movetime 60000")
        self.assertIn(" score mate -1 ", engine.until("bestmove")[-2])
        engine.say(f"position fen {MATE} moves e1e8", "go nodes 10")
        self.assertEqual(engine.until("bestmove"), ["bestmove (none)"])
        engine.say("position fen 7k/5Q2/6K1/8/8/8/8/8 b - - 0 1", "go infinite", "stop")
        self.assertEqual(engine.until("bestmove"), ["bestmove (none)"])
        self.ends(engine)

    def test_it_reads_while_it_searches(self):
        engine = self.engine()
        engine.say("position startpos", "go infinite")
        engine.say("isready")
        engine.until("readyok", seconds=10)
        engine.say("position startpos moves e2e4", "d")
        engine.until("  a b c", seconds=10)
        self.assertFalse(any(line.startswith("bestmove") for line in engine.lines))
        engine.say("stop")
        self.assertIn(engine.until("bestmove", seconds=10)[-1].split()[1][1], "12")  # of the position before: White moves
        engine.say("stop", "isready")  # nothing to stop
        self.assertEqual(engine.until("readyok")[-1], "readyok")
        self.ends(engine)

    def test_infinite_answers_only_when_stopped(self):
        engine = self.engine()
        engine.say(f"position fen {MATE}", "go infinite", "isready")
        engine.until("readyok")
        time.sleep(0.3)  # it has proven the mate long since
        self.assertEqual([line for line in engine.lines if line.startswith("bestmove")], [])
        self.assertEqual(engine.best("stop"), "e1e8")
        engine.say("go infinite", "go nodes 5")  # the second ends the first
        self.assertEqual(engine.until("bestmove")[-1], "bestmove e1e8")
        self.assertEqual(engine.until("bestmove")[-1], "bestmove e1e8")
        self.ends(engine)

    def test_time(self):
        engine = self.engine()
        for command, least, most in (("go movetime 300", 0.2, 5), ("go wtime 9000 btime 1", 0.2, 5), ("go btime 60000 wtime 2", 0, 5),
                                     ("go wtime 1000 winc 400 movestogo 10", 0.2, 5), ("go wtime -5 btime 100", 0, 5),
                                     ("go movetime 0", 0, 5)):
            began = time.monotonic()
            engine.best("ucinewgame", "position startpos", command)
            taken = time.monotonic() - began
            self.assertGreaterEqual(taken, least, command)
            self.assertLess(taken, most * (20 if program.sanitized() else 1), command)
        self.ends(engine)

    def test_searchmoves(self):
        engine = self.engine()
        self.assertEqual(engine.best("position startpos", "go nodes 20 searchmoves a2a3"), "a2a3")
        self.assertIn(engine.best("go searchmoves h2h4 h2h3 nodes 20"), ("h2h3", "h2h4"))
        self.assertRegex(engine.best("go searchmoves e1e8 nodes 3"), "^[a-h][12][a-h][34]$")  # not legal: any other move
        self.ends(engine)

    def test_bad_lines_change_nothing(self):
        engine = self.engine("--nodes", "2")
        engine.say("position startpos moves e2e4 e7e5")
        bad = {"hello world": "unknown command 'hello'", "position": "expected startpos or fen, found nothing",
               "position startpos moves e2e5": "expected one of the 20 legal moves such as b1a3, found 'e2e5'",
               "position startpos e2e4": "expected moves after startpos, found 'e2e4'",
               "position startpos moves e2e4 e7e5 \x07": r"found '\x07'",
               "position fen 8/8 w - - 0 1": "[chess] FEN", "position fen": "[chess] FEN",
               "position fen 4k3/8/8/8/8/8/8/4K2R w X - 0 1": "[chess] FEN", f"position fen {MATE} moves e1e8 a1a2": "found 'a1a2'",
               "setoption name Hash value 16": "expected Nodes, Move Overhead or UCI_ShowWDL, found 'Hash'",
               "setoption name Nodes value x": "expected a whole number from 1", "setoption": "expected name",
               "setoption name UCI_ShowWDL value 1": "expected true or false, found '1'",
               "x" * 200_000: "unknown command 'xxx", "\x00\xff\x1b[2J": "unknown command"}
        for line, message in bad.items():
            engine.process.stdin.flush()
            engine.process.stdin.buffer.write(line.encode("latin-1") + b"\n")
            engine.process.stdin.flush()
            answer = engine.until("info string")[-1]
            self.assertIn(message, answer)
            self.assertLess(len(answer), 400)
            self.assertTrue(answer.isprintable())
        engine.say("", "   ", "debug on", "d")
        self.assertTrue(engine.until("rnbqkbnr/")[-1].startswith("rnbqkbnr/pppp1ppp/8/4p3/4P3/8/PPPP1PPP/RNBQKBNR w KQkq"))
        engine.say("go nodes many wtime infinite winc", "stop")
        self.assertEqual([line for line in engine.until("bestmove") if "ignored" in line],
                         [f"info string go: ignored '{word}'" for word in ("nodes", "many", "wtime", "winc")])
        self.ends(engine)

    def test_a_game_goes_on_after_a_draw_that_must_be_claimed(self):
        engine = self.engine("--nodes", "5")
        shuffle = " ".join(["g1f3 g8f6 f3g1 f6g8"] * 4)
        self.assertRegex(engine.best(f"position startpos moves {shuffle}", "go"), "^[a-h][12][a-h][34]$")
        self.assertRegex(engine.best(f"position startpos moves {shuffle} e2e4", "go"), "^[a-h][78][a-h][56]$")
        self.assertRegex(engine.best("position fen 4k3/8/8/8/8/8/8/R3K3 w - - 99 80 moves a1a2 e8d8", "go"), "^[ae][12][a-h][1-8]$")
        self.assertRegex(engine.best("position fen 4k3/8/8/8/8/8/8/4K3 w - - 0 1 moves e1e2", "go"), "^e8[def][78]$")
        engine.say("d")
        self.assertTrue(engine.until("4k3/")[-1].startswith("4k3/8/8/8/8/8/4K3/8 b"))
        self.ends(engine)

    def test_the_tree_is_kept(self):
        engine = self.engine()
        lines = []
        for nodes in (2000, 1):
            engine.say("ucinewgame", "position startpos", f"go nodes {nodes}")
            lines.append(engine.until("bestmove")[-2].split(" pv ")[1].split())
            engine.say(f"position startpos moves {' '.join(lines[0][:2])}", "go nodes 1")
            lines.append(engine.until("bestmove")[-2].split(" pv ")[1].split())
        self.assertGreater(len(lines[1]), 1)
        self.assertEqual(len(lines[3]), 1)  # one simulation alone sees one move
        self.ends(engine)

    def test_random_games_are_legal(self):
        engine, words = self.engine("--nodes", "2"), random.Random(3)
        for _ in range(3):
            moves = []
            engine.say("ucinewgame")
            for _ in range(60):
                best = engine.best(f"position startpos moves {' '.join(moves)}", f"go nodes {words.randint(1, 6)}")
                if best == "(none)":
                    break
                moves.append(best)
            engine.say(f"position startpos moves {' '.join(moves)}", "isready")
            self.assertEqual(engine.until("readyok"), ["readyok"])  # no move was refused
        self.ends(engine)

    def test_the_end_of_the_input(self):
        for last in ([], ["go infinite"], ["go nodes 1000000000"], ["go movetime 100000"], ["uci"], ["quit"], ["go infinite", "quit"]):
            engine = self.engine()
            engine.say("isready", *last)
            began = time.monotonic()
            code, error = engine.close()
            self.assertEqual((code, error), (0, ""), last)
            self.assertLess(time.monotonic() - began, 30, last)
            self.assertEqual(sum(line.startswith("bestmove") for line in engine.lines), sum("go" in line for line in last))
        run = program.quern("uci", self.chess, input="isready\nposition startpos\ngo nodes 3")  # no line break at the end
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        self.assertIn("bestmove ", run.stdout)

    def test_bad_usage(self):
        self.fails("uci", says=["uci"])
        self.fails("uci", self.text, says=["expected a run of `quern selfplay chess`, found one that trains on text"])
        self.fails("uci", self.path("none"), says=["none"])
        self.fails("uci", self.chess, "--nodes", "0", says=["--nodes"])
        self.assertIn("readyok", program.quern("uci", "--run", self.chess, input="isready\n").stdout)


if __name__ == "__main__":
    program.main()
