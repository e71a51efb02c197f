"""What a run wrote is text, never markup; a report needs nothing but its file."""
import pathlib
import tempfile
import unittest

from assemble import FOLDER, assemble
from browser import PageTest
from fixture import KINDS
from views import HOSTILE, hostile_view


class Safety(PageTest):
    def report(self, view):
        folder = tempfile.TemporaryDirectory(prefix="quern-page-")
        self.addCleanup(folder.cleanup)
        path = pathlib.Path(folder.name) / "report.html"
        path.write_text(assemble(view))
        self.addCleanup(self.browser.open, "about:blank")
        self.open(path.as_uri())
        return path

    def assert_no_markup(self):
        self.assertEqual(self.run_js("document.querySelectorAll('img, b').length"), 0)
        self.assertEqual(self.run_js("document.querySelectorAll('script').length"), self.scripts)
        self.assertIn("<img src=x onerror=alert(1)>", self.text("h1"))
        self.assertIn("<b>bold</b>", self.text(".event-list"))
        self.assertIn("<b>bold</b>", self.text("blockquote p"))

    def test_hostile_text_stays_text(self):
        self.scripts = 1
        self.serve("hostile")
        self.assert_no_markup()

    def test_hostile_text_stays_text_in_a_report(self):
        self.scripts = 2  # with the data
        self.report(hostile_view())
        self.assert_no_markup()
        self.assertEqual(self.run_js("quern.view.runs[0].name"), HOSTILE)

    def test_a_report_opens_offline_and_asks_for_nothing(self):
        view = KINDS["several"]().view({})
        path = self.report(view)
        self.assertEqual(self.browser.requests, [path.as_uri()])
        self.assertEqual(self.settings()["connection"], "report")
        self.assertEqual(self.lines("loss")[0]["value"], view["runs"][0]["series"]["loss"]["value"])
        self.assertEqual(self.text("#connection"), "report")

    def test_a_page_without_data_says_so(self):
        folder = tempfile.TemporaryDirectory(prefix="quern-page-")
        self.addCleanup(folder.cleanup)
        path = pathlib.Path(folder.name) / "page.html"
        path.write_text(assemble())
        self.open(path.as_uri(), drawn=False)
        self.assertIn("This file has no data in it.", self.text("#notices"))


class Source(unittest.TestCase):
    def test_no_way_to_write_markup_or_to_leave_the_page(self):
        """Reads the page's own files: none uses what could turn text into markup or code, or ask another host."""
        for path in FOLDER.iterdir():
            text = path.read_text()
            for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", "https://",
                         "XMLHttpRequest", "importScripts", "@import"):
                self.assertNotIn(word, text, path.name)
            self.assertNotIn("http://", text.replace("http://www.w3.org/2000/svg", ""), path.name)


if __name__ == "__main__":
    unittest.main()
