"""`quern dashboard`: what it serves, to whom, and what bad clients cannot do to it."""

import http.client
import json
import os
import random
import re
import shutil
import signal
import socket
import time

import program


class DashboardTest(program.ProgramTest):
    def train(self, run, *arguments):
        return self.works("train", *program.SMALL, "--run", self.path(run), "--set", "log.interval=1", *arguments)

    def serve(self, *arguments, options=("--port", "0")):
        process = program.start("dashboard", *arguments, *options)
        self.addCleanup(self.end, process)
        lines = [process.stdout.readline()]
        while not lines[-1].startswith("dashboard: "):
            self.assertTrue(lines[-1], process.poll())
            lines.append(process.stdout.readline())
        self.process, self.said = process, lines
        self.port = int(re.search(r":(\d+)/$", lines[-1].strip()).group(1))
        return process

    @staticmethod
    def end(process):
        if process.poll() is None:
            process.kill()
        process.communicate()

    def get(self, path, method="GET", host="localhost", timeout=60):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        connection.putrequest(method, path, skip_host=True)
        if host is not None:
            connection.putheader("Host", host)
        connection.endheaders()
        answer = connection.getresponse()
        body = answer.read()
        connection.close()
        return answer, body

    def view(self, query=""):
        answer, body = self.get("/api/view" + query)
        self.assertEqual((answer.status, answer.getheader("Content-Type")), (200, "application/json"))
        return json.loads(body)

    def link(self):
        link = socket.create_connection(("127.0.0.1", self.port), 60)
        self.addCleanup(link.close)
        return link

    def raw(self, data):
        """What the server answers, until it closes."""
        answer = b""
        with socket.create_connection(("127.0.0.1", self.port), 60) as link:
            try:
                link.sendall(data)
                link.shutdown(socket.SHUT_WR)
                while part := link.recv(65536):
                    answer += part
            except ConnectionError:
                pass
        return answer

    def until(self, condition, seconds=program.TIMEOUT):
        end = time.monotonic() + seconds
        while not condition():
            self.assertLess(time.monotonic(), end)
            time.sleep(0.05)

    def events(self):
        """A stream, as a function that returns the data of its next change."""
        link = self.link()
        link.sendall(b"GET /api/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        file = link.makefile("rb")
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += file.readline()
        self.assertIn(b"text/event-stream", head)

        def change():
            name = None
            while True:
                line = file.readline().decode().rstrip("\n")
                if line.startswith("event: "):
                    name = line[7:]
                if line.startswith("data: "):
                    self.assertEqual(name, "change")
                    return json.loads(line[6:])
        return change


class Routes(DashboardTest):
    def test_page_view_and_nothing_else(self):
        self.train("run", "--steps", 20)
        self.serve("--run", self.path("run"))
        self.assertEqual(self.said, [f"dashboard: http://127.0.0.1:{self.port}/\n"])
        answer, page = self.get("/")
        self.assertEqual(answer.status, 200)
        self.assertIn(b"<!doctype html>", page)
        self.assertEqual(answer.getheader("X-Content-Type-Options"), "nosniff")
        self.assertIn("default-src 'none'", answer.getheader("Content-Security-Policy"))
        head, body = self.get("/", method="HEAD")
        self.assertEqual((head.status, body, head.getheader("Content-Length")), (200, b"", str(len(page))))
        view = self.view()["runs"][0]
        self.assertEqual((view["state"], view["step"], view["steps"]), ("finished", 20, 20))
        logged = [json.loads(line) for line in (self.folder / "run/metrics.jsonl").read_text().splitlines()]
        losses = [entry["loss"] for entry in logged if "loss" in entry]
        for shown, loss in zip(view["series"]["loss"]["value"], losses, strict=True):
            self.assertAlmostEqual(shown, loss, delta=1e-6 * loss)
        labels = {row["label"]: row["value"] for row in view["header"]}
        self.assertIn("quern train", labels["Command"])
        self.assertEqual(labels["Weights hash"], json.loads(self.works("info", "--run", self.path("run"), "--json"))
                         ["weights_hash"])
        self.assertEqual(self.view("?from=5&to=7")["runs"][0]["series"]["loss"]["step"], [5, 6, 7])
        self.assertEqual(self.view("?run=1")["runs"], [])
        secret = self.write("secret", "a secret")
        for path in ("/x", "/api", "/api/view/", "//", "/../../etc/passwd", "/..%2f..%2fetc%2fpasswd", "/index.html",
                     f"/{secret}", "/./", "/%00", "/run/config.toml", "/api/view%3f"):
            answer, body = self.get(path)
            self.assertEqual(answer.status, 404, path)
            self.assertNotIn(b"root:", body)
        for query in ("?x=y", "?from=x", "?points=nan", "?from=1e999", "?to="):
            self.assertEqual(self.get("/api/view" + query)[0].status, 400, query)
        for method in ("POST", "PUT", "DELETE", "OPTIONS", "TRACE", "PATCH"):
            answer, _ = self.get("/", method=method)
            self.assertEqual((answer.status, answer.getheader("Allow")), (405, "GET, HEAD"), method)

    def test_only_this_machine_is_the_host(self):
        self.train("run", "--steps", 2)
        self.serve("--run", self.path("run"))
        for host in ("localhost", "127.0.0.1", "[::1]", f"localhost:{self.port}", "LOCALHOST", f"127.0.0.1:{self.port}"):
            self.assertEqual(self.get("/api/view", host=host)[0].status, 200, host)
        for host in ("evil.example", "localhost.evil.example", "127.0.0.1.evil.example:8321", "", None, "192.168.0.1"):
            answer, body = self.get("/api/view", host=host)
            self.assertEqual(answer.status, 403, host)
            self.assertNotIn(b"loss", body)

    def test_a_port_in_use(self):
        self.train("run", "--steps", 2)
        taken = socket.socket()
        self.addCleanup(taken.close)
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        self.serve("--run", self.path("run"), options=("--port", port))
        self.assertEqual(self.said[0], f"port {port} is in use\n")
        self.assertGreater(self.port, port)
        self.assertEqual(len(self.view()["runs"]), 1)

    def test_ctrl_c_ends_it(self):
        self.train("run", "--steps", 2)
        process = self.serve("--run", self.path("run"))
        self.events()()
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(timeout=30), 0)

    def test_bad_usage(self):
        self.fails("dashboard", says=["expected --run DIR"])
        self.fails("dashboard", self.path("none"), says=["expected the directory of a run", "found none"])
        self.write("file", "x")
        self.fails("dashboard", self.path("file"), says=["found a file"])
        os.mkdir(self.path("empty"))
        self.fails("dashboard", self.path("empty"), "--port", "99999", says=["99999"])
        self.fails("dashboard", self.path("empty"), "--host", "no such host", says=["--host no such host"])

    def test_another_address_is_said(self):
        self.train("run", "--steps", 2)
        process = self.serve("--run", self.path("run"), options=("--port", "0", "--host", "0.0.0.0"))
        self.assertEqual(self.get("/api/view", host="10.1.2.3")[0].status, 200)
        self.assertEqual(self.get("/api/view", host="evil.example")[0].status, 403)
        process.send_signal(signal.SIGINT)
        self.assertIn("there is no password", process.communicate()[1])


class Runs(DashboardTest):
    def test_several_runs_and_a_directory_of_runs(self):
        self.train("runs/a", "--steps", 4)
        self.train("runs/deep/b", "--steps", 5, "--rate", "1e-4")
        self.serve("--run", self.path("runs/a"), self.path("runs/deep/b"))
        self.assertEqual([(run["id"], run["step"]) for run in self.view()["runs"]], [("0", 5), ("1", 4)])
        self.assertEqual(len(self.view("?run=1")["runs"]), 1)
        self.end(self.process)
        self.serve(self.path("runs"))
        self.assertEqual([run["name"] for run in self.view()["runs"]],
                         [self.path("runs/a"), self.path("runs/deep/b")])
        self.train("runs/c", "--steps", 3)  # appears by itself
        self.until(lambda: len(self.view()["runs"]) == 3, 30)
        shutil.rmtree(self.path("runs/a"))  # stays as it was
        self.until(lambda: self.view()["runs"][0]["state"] == "interrupted", 30)
        self.assertEqual(len(self.view()["runs"][0]["series"]["loss"]["step"]), 4)

    def test_damaged_lines(self):
        self.train("run", "--steps", 6)
        with open(self.path("run/metrics.jsonl"), "ab") as file:
            file.write(b'{"step":7,"lo\n\xff\xfe\n{"step":7,"loss":1}')
        self.serve("--run", self.path("run"))
        run = self.view()["runs"][0]
        self.assertEqual([event["kind"] for event in run["events"]].count("damage"), 2)
        self.assertEqual(run["step"], 6)  # the last line has no line break yet
        self.assertIn({"label": "Damaged lines", "value": "2"}, run["header"])

    def test_events_while_a_run_trains_is_killed_and_resumed(self):
        args = ("train", *program.SMALL, "--run", self.path("run"), "--set", "log.interval=1", "--steps", "1000000",
                "--set", "checkpoint.interval=50")
        trainer = program.start(*args)
        self.addCleanup(self.end, trainer)
        self.until(lambda: os.path.exists(self.path("run/metrics.jsonl")))
        self.serve("--run", self.path("run"))
        change = self.events()
        seen = []
        while len(seen) < 3 or seen[-1]["step"] < 120:
            seen.append(change()["runs"][0])
        self.assertEqual([each["revision"] for each in seen], sorted(each["revision"] for each in seen))
        self.assertEqual({each["state"] for each in seen[1:]}, {"training"})
        self.assertLess(seen[0]["step"], seen[-1]["step"])
        run = self.view()["runs"][0]
        self.assertGreater(run["seconds_left"], 0)
        trainer.kill()
        trainer.wait()
        while change()["runs"][0]["state"] != "interrupted":
            pass
        resumed = program.start("train", "--run", self.path("run"), "--resume", "--dashboard")
        self.addCleanup(self.end, resumed)
        said = resumed.stdout.readline()
        while not said.startswith("dashboard: http://127.0.0.1:"):
            self.assertTrue(said)
            said = resumed.stdout.readline()
        while change()["runs"][0]["state"] != "training":
            pass
        own = self.port
        self.port = int(re.search(r":(\d+)/", said).group(1))  # the same from the process that trains
        self.until(lambda: any(event["kind"] == "resume" for event in self.view()["runs"][0]["events"]), 60)
        self.port = own
        self.until(lambda: any(event["kind"] == "resume" for event in self.view()["runs"][0]["events"]), 60)
        resumed.send_signal(signal.SIGINT)
        self.assertEqual(resumed.wait(timeout=program.TIMEOUT), 0)
        self.until(lambda: self.view()["runs"][0]["state"] == "stopped", 30)
        steps = self.view("?points=20000")["runs"][0]["series"]["loss"]["step"]
        self.assertEqual(steps, list(range(1, len(steps) + 1)))  # none twice


class Flag(DashboardTest):
    def test_a_run_has_a_dashboard_only_on_request(self):
        self.assertNotIn("dashboard", self.train("without", "--steps", 2))
        self.assertRegex(self.train("any", "--steps", 2, "--dashboard", 0), r"^dashboard: http://127\.0\.0\.1:\d+/\n")
        self.assertRegex(self.train("same", "--steps", 2, "--dashboard=0"), r"^dashboard: http://127\.0\.0\.1:\d+/\n")


class BadClients(DashboardTest):
    def setUp(self):
        super().setUp()
        self.train("run", "--steps", 20)
        self.serve("--run", self.path("run"))

    def resident(self):
        with open(f"/proc/{self.process.pid}/status") as file:
            return int(re.search(r"VmRSS:\s*(\d+)", file.read()).group(1))

    def test_heads_that_are_no_heads(self):
        self.assertTrue(self.raw(b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 20000).startswith(
            b"HTTP/1.1 431 "))
        self.assertTrue(self.raw(b"GET /" + b"a" * 9000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n").startswith(
            b"HTTP/1.1 431 "))
        self.assertTrue(self.raw(b"GET / HTTP/1.1\nHost: localhost\n\n") in (b"",))
        self.assertTrue(self.raw(b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\nabc").startswith(
            b"HTTP/1.1 400 "))
        self.assertTrue(self.raw(b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n").startswith(b"HTTP/1.1 400 "))

    def test_requests_one_after_the_other(self):
        one = b"GET /api/view HTTP/1.1\r\nHost: localhost\r\n\r\n"
        answer = self.raw(one * 5 + one.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n") + one)
        self.assertEqual(answer.count(b"HTTP/1.1 200 OK"), 6)

    def test_random_bytes(self):
        choice, end = random.Random(1), time.monotonic() + 4
        good = b"GET /api/view?from=1 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        while time.monotonic() < end:
            if choice.random() < 0.3:
                data = choice.randbytes(choice.randrange(1, 12000))
            else:
                data = bytearray(good)
                for _ in range(choice.randrange(1, 6)):
                    data[choice.randrange(len(data))] = choice.randrange(256)
                data = bytes(data[:choice.randrange(1, len(data) + 1)])
            answer = self.raw(data)
            self.assertTrue(answer == b"" or re.match(rb"HTTP/1\.1 (200|400|403|404|405|431|505) ", answer), (data, answer))
        self.assertEqual(self.get("/")[0].status, 200)

    def test_slow_clients_do_not_keep_others_waiting(self):
        """More of them than there may be connections, each in the middle of its head."""
        links = []
        for _ in range(100):
            link = self.link()
            link.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nX: ")
            links.append(link)
        begin = time.monotonic()
        while time.monotonic() - begin < 14:
            for link in links:
                try:
                    link.sendall(b"a")
                except OSError:
                    pass
            asked = time.monotonic()
            self.assertEqual(self.get("/api/view")[0].status, 200)
            self.assertLess(time.monotonic() - asked, 5)
            time.sleep(1)
        closed = 0
        for link in links:
            link.settimeout(5)
            try:
                closed += link.recv(1) == b""
            except ConnectionError:
                closed += 1
        self.assertEqual(closed, len(links))  # although each sent a byte a second

    def test_clients_that_do_not_read(self):
        """Answers and events for them take no memory."""
        self.view()
        before = self.resident()
        for path in (b"/api/view", b"/api/events") * 30:
            link = self.link()
            link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
            link.sendall((b"GET " + path + b" HTTP/1.1\r\nHost: localhost\r\n\r\n") * 50)
        for step in range(21, 400):
            with open(self.path("run/metrics.jsonl"), "a") as file:
                file.write(f'{{"step":{step},"loss":1}}\n')
            time.sleep(0.01)
        self.assertEqual(self.get("/")[0].status, 200)
        self.assertLess(self.resident() - before, 30_000)

    def test_clients_that_vanish(self):
        files = len(os.listdir(f"/proc/{self.process.pid}/fd"))
        for i in range(200):
            link = socket.create_connection(("127.0.0.1", self.port), 60)
            link.sendall(b"GET " + (b"/api/events", b"/api/view", b"/")[i % 3] + b" HTTP/1.1\r\nHost: localhost\r\n\r\n")
            if i % 2:
                link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            link.close()
        self.until(lambda: len(os.listdir(f"/proc/{self.process.pid}/fd")) <= files + 1, 60)
        self.assertEqual(self.get("/")[0].status, 200)


class Report(DashboardTest):
    def test_a_report_is_one_file(self):
        self.train("run", "--steps", 20)
        self.assertIn("bytes", self.works("report", "--run", self.path("run"), "--html", self.path("a.html")))
        html = (self.folder / "a.html").read_text()
        data = json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', html, re.S).group(1))
        self.assertEqual(data["runs"][0]["step"], 20)
        self.assertLess(len(html), 1_000_000)
        self.assertNotRegex(html, r'(src|href)="https?:')
        self.works("report", "--run", self.path("run"), "--html", self.path("a.html"))  # its own report
        other = self.write("b.html", "my thesis")
        self.fails("report", "--run", self.path("run"), "--html", other, says=["--force"])
        self.assertEqual((self.folder / "b.html").read_text(), "my thesis")
        self.works("report", self.path("run"), self.path("run"), "--html", other, "--force")
        self.fails("report", "--run", self.path("none"), "--html", self.path("c.html"), says=["none"])
        self.assertFalse((self.folder / "c.html").exists())
        self.fails("report", "--run", self.path("run"), "--force", says=["--html"])

    def test_a_pipe_is_not_read(self):
        self.train("run", "--steps", 2)
        os.mkfifo(self.path("pipe"))
        self.fails("report", "--run", self.path("run"), "--html", self.path("pipe"), says=["pipe", "--force"])


if __name__ == "__main__":
    program.main()
