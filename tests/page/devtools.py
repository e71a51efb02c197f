"""A headless Chromium, driven over the DevTools protocol by a WebSocket client of the standard library."""
import base64
import json
import os
import pathlib
import shutil
import socket
import struct
import subprocess
import tempfile
import time
from urllib.request import urlopen

FLAGS = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--disable-extensions",
         "--disable-background-networking", "--disable-component-update", "--disable-sync", "--metrics-recording-only",
         "--hide-scrollbars", "--remote-debugging-port=0"]


def find_browser():
    """The path of Chromium or Chrome, or None."""
    return next((path for path in map(shutil.which, ("chromium", "chromium-browser", "google-chrome")) if path), None)


class WebSocket:
    """The client's side of RFC 6455, text messages only."""

    def __init__(self, host, port, path):
        self.socket = socket.create_connection((host, port), timeout=30)
        key = base64.b64encode(os.urandom(16)).decode()
        self.socket.sendall(f"GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                            f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode())
        self.buffer = b""
        while b"\r\n\r\n" not in self.buffer:
            self.buffer += self.socket.recv(4096)
        head, self.buffer = self.buffer.split(b"\r\n\r\n", 1)
        if b" 101 " not in head.split(b"\r\n")[0]:
            raise RuntimeError(f"expected a WebSocket, found {head!r}")

    def send(self, text):
        body, mask = text.encode(), os.urandom(4)
        length = len(body)
        head = bytes([0x81, 0x80 | (length if length < 126 else 126 if length < 65536 else 127)])
        head += b"" if length < 126 else struct.pack(">H", length) if length < 65536 else struct.pack(">Q", length)
        repeated = mask * (length // 4 + 1)
        masked = (int.from_bytes(body, "big") ^ int.from_bytes(repeated[:length], "big")).to_bytes(length, "big")
        self.socket.sendall(head + mask + masked)

    def take(self, count):
        while len(self.buffer) < count:
            data = self.socket.recv(1 << 16)
            if not data:
                raise ConnectionError("the browser closed the connection")
            self.buffer += data
        taken, self.buffer = self.buffer[:count], self.buffer[count:]
        return taken

    def receive(self, timeout):
        """The next message, or None after `timeout` seconds without one."""
        self.socket.settimeout(max(timeout, 0.001))
        try:
            if not self.buffer:
                self.buffer = self.socket.recv(1 << 16)
        except TimeoutError:
            return None
        self.socket.settimeout(30)
        message = b""
        while True:
            first, length = self.take(2)
            if length == 126:
                length = struct.unpack(">H", self.take(2))[0]
            elif length == 127:
                length = struct.unpack(">Q", self.take(8))[0]
            body = self.take(length)
            if first & 0x0F in (0, 1):
                message += body
                if first & 0x80:
                    return message.decode()


class Browser:
    """One browser with one tab. Collects what the tests ask about: console errors and requested addresses."""

    def __init__(self, path):
        self.profile = tempfile.mkdtemp(prefix="quern-page-")
        self.process = subprocess.Popen([path, *FLAGS, f"--user-data-dir={self.profile}", "about:blank"],
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        port = self.find_port()
        with urlopen(f"http://127.0.0.1:{port}/json") as answer:
            tabs = json.load(answer)
        path = next(tab for tab in tabs if tab["type"] == "page")["webSocketDebuggerUrl"].split(str(port), 1)[1]
        self.socket = WebSocket("127.0.0.1", port, path)
        self.number = 0
        self.problems, self.requests = [], []
        self.loaded = 0
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def find_port(self):
        """Chromium chooses a free port and writes it into its profile."""
        file = pathlib.Path(self.profile, "DevToolsActivePort")
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and self.process.poll() is None:
            if file.exists() and "\n" in (text := file.read_text()):
                return int(text.split()[0])
            time.sleep(0.05)
        raise RuntimeError("Chromium does not start")

    def close(self):
        self.socket.socket.close()
        self.process.terminate()
        self.process.wait(30)
        shutil.rmtree(self.profile, ignore_errors=True)

    def call(self, method, **parameters):
        self.number += 1
        number = self.number
        self.socket.send(json.dumps({"id": number, "method": method, "params": parameters}))
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            text = self.socket.receive(1)
            message = json.loads(text) if text else {}
            if message.get("id") == number:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']['message']}")
                return message["result"]
            self.note(message)
        raise TimeoutError(method)

    def note(self, message):
        method, parameters = message.get("method"), message.get("params", {})
        if method == "Runtime.exceptionThrown":
            details = parameters["exceptionDetails"]
            self.problems.append(details.get("exception", {}).get("description", details["text"]))
        elif method == "Runtime.consoleAPICalled" and parameters["type"] in ("error", "warning", "assert"):
            self.problems.append(" ".join(str(argument.get("value")) for argument in parameters["args"]))
        elif method == "Log.entryAdded" and parameters["entry"]["level"] == "error":
            self.problems.append(f"{parameters['entry']['text']} {parameters['entry'].get('url', '')}")
        elif method == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"])
        elif method == "Page.loadEventFired":
            self.loaded += 1

    def open(self, url):
        before = self.loaded
        self.problems, self.requests = [], []
        self.call("Page.navigate", url=url)
        self.wait(lambda: self.loaded > before, "the page is loaded")

    def run(self, expression):
        """The value of JavaScript, which may be a promise."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(result["exceptionDetails"]["exception"].get("description", expression))
        return result["result"].get("value")

    def wait(self, condition, what, seconds=15):
        """Until a function or a JavaScript expression is true."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if self.run(f"Boolean({condition})") if isinstance(condition, str) else condition():
                return
            text = self.socket.receive(0.02)
            if text:
                self.note(json.loads(text))
        raise AssertionError(f"expected within {seconds} s: {what}")

    def size(self, width, height, scale=1, mobile=False):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale, mobile=mobile)

    def prefer(self, theme):
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": theme}])

    def key(self, key, shift=False):
        text = {"text": key} if len(key) == 1 else {}
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, modifiers=8 if shift else 0, **text)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key, modifiers=8 if shift else 0)

    def mouse(self, kind, x, y, buttons=0, clicks=0, shift=False):
        button = "left" if buttons or kind == "mouseReleased" else "none"
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button=button, buttons=buttons, clickCount=clicks,
                  modifiers=8 if shift else 0)

    def screenshot(self, path, full=False):
        clip = {}
        if full:
            size = self.call("Page.getLayoutMetrics")["cssContentSize"]
            clip = {"clip": {**size, "scale": 1}, "captureBeyondViewport": True}
        data = self.call("Page.captureScreenshot", format="png", **clip)["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))
