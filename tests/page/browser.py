"""Shared by the tests of the page: one browser for a file of tests, and a server for each test."""
import unittest

from devtools import Browser, find_browser
from fixture import KINDS, Server

MISSING = "no Chromium: `scripts/install-deps --browser` installs it"
DRAWN = "performance.getEntriesByName('quern-drawn').length"


@unittest.skipUnless(find_browser(), MISSING)
class PageTest(unittest.TestCase):
    """Tests in a browser that must end without an error on its console or a request to another host."""

    @classmethod
    def setUpClass(cls):
        cls.browser = Browser(find_browser())
        cls.addClassCleanup(cls.browser.close)

    def setUp(self):
        self.browser.size(1440, 1000)
        self.browser.prefer("light")
        self.allowed = ""  # a text that an error on the console may contain

    def tearDown(self):
        self.browser.run("1")  # takes what the browser still has to say
        problems = [text for text in self.browser.problems if not self.allowed or self.allowed not in text]
        self.assertEqual(problems, [])
        elsewhere = [url for url in self.browser.requests if not url.startswith(self.origins)]
        self.assertEqual(elsewhere, [])

    def serve(self, kind_or_fixture):
        """Opens the page on a fixture, which it returns."""
        fixture = KINDS[kind_or_fixture]() if isinstance(kind_or_fixture, str) else kind_or_fixture
        self.server = Server(fixture)
        self.addCleanup(self.server.close)
        self.addCleanup(self.browser.open, "about:blank")
        self.open(self.server.url)
        return fixture

    def open(self, url, drawn=True):
        self.origins = (url, "data:", "about:")
        self.browser.open(url)
        if drawn:
            self.browser.wait(DRAWN, "a chart is drawn")

    def run_js(self, expression):
        return self.browser.run(expression)

    def settings(self):
        return self.run_js("quern.settings")

    def lines(self, panel):
        """The curves of a panel, as drawn."""
        charts = {chart["panel"]: chart for chart in self.run_js("quern.charts()")}
        self.assertIn(panel, charts)
        return charts[panel]["lines"]

    def box(self, panel):
        """Of a panel's plot in the window: left, top, width, height."""
        return self.run_js(f"""(() => {{
          const node = document.querySelector('[data-panel="{panel}"] .plot');
          node.scrollIntoView({{block: 'center'}});
          const box = node.getBoundingClientRect();
          return [box.left, box.top, box.width, box.height];
        }})()""")

    def text(self, selector):
        return self.run_js(f"document.querySelector({selector!r})?.innerText ?? null")

    def focus(self, panel):
        self.box(panel)
        self.run_js(f"document.querySelector('[data-panel=\"{panel}\"] .plot').focus()")

    def frame(self):
        """Waits until what was asked for is drawn."""
        self.run_js("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))")
