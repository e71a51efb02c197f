"""A server of the page with synthetic runs, for tests and for work on the page:

    python3 tests/page/fixture.py several --port 8000    # or one, million, selfplay, hostile, empty
"""
import argparse
import json
import math
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlparse

from assemble import assemble
from views import Run, history, hostile_view, wrap

POLICY = ("default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; img-src data:; "
          "base-uri 'none'; form-action 'none'; frame-ancestors 'none'")


class Fixture:
    """Runs at steps that a test moves; `fixed` is a view to answer with instead."""

    def __init__(self, runs=(), fixed=None):
        self.runs, self.fixed = list(runs), fixed
        self.at = {run.id: run.steps for run in self.runs}
        self.states = {}
        self.revision = 0
        self.views = []  # the queries of /api/view
        self.busy = self.most_busy = 0
        self.changed = threading.Condition()

    def view(self, query):
        if self.fixed:
            return self.fixed
        cut = {}
        if "from" in query:
            cut = {"lo": float(query["from"]), "hi": float(query["to"]), "x": query.get("x", "step")}
        if "points" in query:
            cut["points"] = int(query["points"])
        return wrap(*(run.view(self.at[run.id], self.states.get(run.id), **cut) for run in self.runs))

    def move(self, id, step, state=None):
        """The run has reached a step."""
        with self.changed:
            self.at[id] = step
            self.states[id] = state
            self.touch()

    def touch(self):
        with self.changed:
            self.revision += 1
            for run in self.runs:
                run.revision = self.revision
            self.changed.notify_all()

    def summary(self):
        return {"runs": [{"id": run.id, "step": self.at[run.id], "state": "training", "revision": run.revision} for run in self.runs]}


def handler(fixture):
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            url = urlparse(self.path)
            query = {name: values[0] for name, values in parse_qs(url.query).items()}
            if url.path == "/":
                self.answer(assemble(), "text/html; charset=utf-8")
            elif url.path == "/api/view":
                self.answer_view(query)
            elif url.path == "/api/events":
                self.stream()
            else:
                self.send_error(404)

        def answer_view(self, query):
            fixture.views.append(query)
            fixture.busy += 1
            fixture.most_busy = max(fixture.most_busy, fixture.busy)
            try:
                self.answer(json.dumps(fixture.view(query), allow_nan=False), "application/json")
            finally:
                fixture.busy -= 1

        def answer(self, text, kind):
            body = text.encode()
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Content-Security-Policy", POLICY)
            self.end_headers()
            self.wfile.write(body)

        def stream(self):
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Connection", "close")
            self.end_headers()
            seen = -1
            while not self.server.closing:
                with fixture.changed:
                    fixture.changed.wait_for(lambda: fixture.revision != seen or self.server.closing, timeout=0.5)
                    if fixture.revision == seen:
                        continue
                    seen = fixture.revision
                try:
                    self.wfile.write(f"event: change\ndata: {json.dumps(fixture.summary())}\n\n".encode())
                    self.wfile.flush()
                except OSError:
                    return
            self.close_connection = True

        def log_message(self, *arguments):
            pass

    return Handler


class Server:
    """Serves a fixture on a free port of the loopback interface, in threads."""

    def __init__(self, fixture, port=0):
        ThreadingHTTPServer.daemon_threads = True
        ThreadingHTTPServer.block_on_close = False
        ThreadingHTTPServer.allow_reuse_address = True
        self.server = ThreadingHTTPServer(("127.0.0.1", port), handler(fixture))
        self.server.closing = False
        self.server.handle_error = lambda *arguments: None  # a browser that leaves is no error
        self.port = self.server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}/"
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def close(self):
        self.server.closing = True
        self.server.shutdown()
        self.server.server_close()


def several():
    return Fixture([history(Run("0", "runs/first", 5000, every=5)), history(Run("1", "runs/wider", 4200, seed=2, every=5, end=1.39)),
                    Run("2", "runs/muon", 3600, seed=3, every=5, end=1.36)])


KINDS = {
    "one": lambda: Fixture([history(Run("0", "runs/first", 5000, every=5))]),
    "several": several,
    "million": lambda: Fixture([history(Run("0", "runs/million", 1_000_000))]),
    "selfplay": lambda: Fixture([history(Run("0", "runs/connect-four", 3000, every=2, selfplay=True))]),
    "hostile": lambda: Fixture(fixed=hostile_view()),
    "empty": lambda: Fixture(),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--from", type=float, default=0.6, dest="start", help="share of the steps at which the runs begin")
    arguments = parser.parse_args()
    fixture = KINDS[arguments.kind]()
    for run in fixture.runs[:1]:
        fixture.at[run.id] = int(run.steps * arguments.start)
    server = Server(fixture, arguments.port)
    print(server.url, flush=True)
    while True:
        time.sleep(0.5)
        for run in fixture.runs[:1]:
            fixture.move(run.id, min(fixture.at[run.id] + max(run.steps // 1000, 1), run.steps))


if __name__ == "__main__":
    sys.exit(main())
