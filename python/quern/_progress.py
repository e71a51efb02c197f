"""The progress line of quern.train(): rewritten in place in a terminal and in a notebook.

Trainings in several threads share one line: each shows its own part of it. All writes go through _Screen, under one
lock. A stream that cannot be written to, such as a closed one, must not end a training: it only loses the line.
"""

import os
import sys
import threading
import time

REFRESH = 0.1  # seconds between writes of the line in a terminal
LOG_REFRESH = 10.0  # seconds between lines in a file or a pipe
BAR, NAME = 20, 30  # characters of the bar, and of the name of a run
WIDTH = 120  # where there is no terminal that has one
FORGETTING = 0.9  # per step, of the shown speed


def in_notebook():
    """Whether this is the kernel of a notebook. IPython is looked up, not imported: it need not be installed."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return type(shell).__name__ == "ZMQInteractiveShell"


def is_terminal(stream):
    try:
        return stream.isatty()
    except (AttributeError, OSError, ValueError):  # None, or a closed file
        return False


def open_bar(wanted, out):
    """What train() shows progress with; None for nothing. `wanted` is its argument: True, False, or None to decide."""
    rewritten = is_terminal(sys.stderr) or in_notebook()
    if sys.stderr is None or not (rewritten if wanted is None else bool(wanted)):
        return None
    name = "".join(c if c.isprintable() else "?" for c in str(out))
    return _Bar(_screen, name if len(name) <= NAME else "..." + name[3 - NAME:], rewritten)


def duration(seconds):
    """As the program prints it: 1m05s, 2h03m."""
    seconds = round(min(seconds, 3.6e9))
    if seconds >= 3600:
        return f"{seconds // 3600}h{seconds // 60 % 60:02}m"
    return f"{seconds // 60}m{seconds % 60:02}s"


class _Screen:
    """The line at the cursor, with the parts of all trainings that are running."""

    def __init__(self):
        self.lock = threading.RLock()
        self.bars = []
        self.length = 0  # of the line that is shown

    def width(self):
        try:
            columns = os.get_terminal_size(sys.stderr.fileno()).columns
        except (AttributeError, OSError, ValueError):
            columns = 0
        return columns - 1 if columns > 1 else WIDTH  # some terminals wrap after the last column; some say 0

    def write(self, text):
        try:
            sys.stderr.write(text)
            sys.stderr.flush()
        except (AttributeError, OSError, ValueError):
            self.length = 0

    def draw(self):
        shown = [bar for bar in self.bars if bar.step or bar.preparing]
        line = shown[0].text() if len(shown) == 1 else "  |  ".join(bar.short_text() for bar in shown)
        line = line[:self.width()]
        line_and_blanks = line.ljust(self.length)  # blanks remove the rest of a longer line, without escape codes
        self.length = len(line_and_blanks)  # noted first: Ctrl-C may raise right after the write
        self.write("\r" + line_and_blanks)
        self.length = len(line)

    def clear(self):
        if self.length:
            self.write("\r" + " " * self.length + "\r")
            self.length = 0


_screen = _Screen()
# A fork may happen while another thread writes; the child must not wait for that thread forever.
os.register_at_fork(after_in_child=_screen.__init__)


class _Bar:
    """The progress of one training."""

    def __init__(self, screen, name, rewritten):
        self.screen, self.name, self.rewritten = screen, name, rewritten
        self.step, self.validation, self.preparing = None, None, ""
        # Exponentially decaying sums over steps. The time left includes validation and saving, tokens/s does not.
        self.tokens = self.seconds = self.steps = self.passed = 0.0
        self.start = self.now = time.monotonic()
        self.drawn = 0.0
        self.ended = False
        with screen.lock:
            if rewritten:
                screen.bars.append(self)

    def show_preparation(self, what, done, total):
        share = f": {100 * done // total} %" if done and total else ""
        self.preparing = what + share
        if self.rewritten and time.monotonic() - self.drawn >= REFRESH:
            self.draw()

    def show_step(self, step):
        now = time.monotonic()
        passed = step.seconds if self.step is None else now - self.now  # what came before the first is no step
        self.tokens = FORGETTING * self.tokens + step.tokens
        self.seconds = FORGETTING * self.seconds + step.seconds
        self.steps = FORGETTING * self.steps + 1
        self.passed = FORGETTING * self.passed + passed
        self.now, self.step = now, step
        if step.validation_loss is not None:
            self.validation = step.validation_loss
        cleared = self.rewritten and self.screen.length == 0
        due = now - self.drawn >= (REFRESH if self.rewritten else LOG_REFRESH)
        if cleared or due:
            self.draw()

    def clear(self):
        with self.screen.lock:
            self.screen.clear()

    def close(self):
        """Leaves the last line on the screen, and the cursor below it."""
        self.ended = True
        with self.screen.lock:
            if self.rewritten:
                self.screen.clear()
                self.screen.bars.remove(self)
            if self.step:
                self.screen.write(self.text()[:self.screen.width()] + "\n")
            if self.screen.bars:
                self.screen.draw()

    def draw(self):
        self.drawn = time.monotonic()
        with self.screen.lock:
            if self.rewritten:
                self.screen.draw()
            else:
                self.screen.write(self.text() + "\n")

    def text(self):
        if self.step is None:
            return self.preparing
        step = self.step
        done = int(BAR * step.step / max(step.steps, 1))
        return (f"{self.name} [{'#' * done}{'-' * (BAR - done)}] {self.short_text(False)}"
                f"  {self.tokens / max(self.seconds, 1e-9):,.0f} tokens/s  {self.time_text()}")

    def short_text(self, alone=True):
        """Leaves room for other trainings."""
        if self.step is None:
            return self.preparing
        text = f"{self.name} " if alone else ""
        text += f"{self.step.step}/{self.step.steps}  loss {self.step.loss:.3f}"
        return text + ("" if self.validation is None else f"  validation {self.validation:.3f}")

    def time_text(self):
        if self.ended:
            return f"took {duration(time.monotonic() - self.start)}"
        return f"{duration((self.step.steps - self.step.step) * self.passed / self.steps)} left"
