"""The page while runs train: it updates by itself, and says what is wrong."""
import time
import unittest

from browser import PageTest
from fixture import Fixture, Server
from views import Run, history


class Live(PageTest):
    def test_curves_move_while_a_run_trains(self):
        fixture = self.serve("one")
        fixture.move("0", 2000)
        self.browser.wait("quern.view.runs[0].step === 2000", "the step of the server")
        self.frame()
        self.assertEqual(self.lines("loss")[0]["x"][-1], 2000)
        self.assertIn("2,000", self.text("#hero"))
        self.assertEqual(self.run_js("document.getElementById('progress').getAttribute('aria-valuenow')"), "40")

    def test_an_update_changes_texts_and_replaces_nothing(self):
        fixture = self.serve("several")
        fixture.move("0", 2000)
        self.browser.wait("quern.view.runs[0].step === 2000", "the first view")
        self.run_js("""window.kept = [...document.querySelectorAll('#hero *, #runs *, #chips *, .legend *, canvas, .detail-list *')];
          getSelection().selectAllChildren(document.querySelector('h1'))""")
        fixture.move("0", 2500)
        self.browser.wait("quern.charts()[0].lines[0].x.at(-1) === 2500", "the curve grows")
        self.assertGreater(self.run_js("kept.length"), 100)
        self.assertEqual(self.run_js("kept.filter(node => !node.isConnected).map(node => node.outerHTML)"), [])
        self.assertEqual(self.run_js("getSelection().toString()"), "runs/first")
        self.assertIn("2,500", self.text("#hero"))
        self.assertIn("2,500", self.text("#runs"))

    def test_updates_keep_zoom_and_choices(self):
        fixture = self.serve("several")
        fixture.move("0", 3000)
        self.browser.wait("quern.view.runs[0].step === 3000", "the first view")
        self.run_js("page.set_range([500, 1500]); page.toggle_run('2'); page.select('1')")
        before = self.settings()
        fixture.move("0", 3500)
        self.browser.wait("quern.view.runs[0].step === 3500", "the next view")
        self.assertEqual(self.settings(), before)

    def test_at_most_one_request_and_two_a_second(self):
        fixture = self.serve("one")
        start, before = time.monotonic(), len(fixture.views)
        while time.monotonic() < start + 2:
            fixture.move("0", 2000 + len(fixture.views))
            time.sleep(0.02)
        count = len(fixture.views) - before
        self.assertGreater(count, 1)
        self.assertLessEqual(count, 6)
        self.assertEqual(fixture.most_busy, 1)

    def test_a_zoom_fetches_finer_curves(self):
        fixture = self.serve(Fixture([history(Run("0", "runs/long", 20000))]))
        whole = self.lines("loss")[0]["points"]
        self.assertLessEqual(whole, 2000)
        self.run_js("page.set_range([10000, 10400])")
        self.browser.wait("page.detail !== null", "a finer view")
        query = fixture.views[-1]
        self.assertEqual((float(query["from"]), float(query["to"]), query["x"]), (9900, 10500, "step"))
        inside = [x for x in self.lines("loss")[0]["x"] if 10000 <= x <= 10400]
        self.assertEqual(inside, list(range(10000, 10401)))

    def test_no_data_yet(self):
        run = Run("0", "runs/new", 1000)
        fixture = Fixture([run])
        fixture.move("0", 0, "preparing")
        self.server = Server(fixture)
        self.addCleanup(self.server.close)
        self.open(self.server.url, drawn=False)
        self.browser.wait("quern.view", "a view")
        self.assertEqual(self.text("#empty"), "Waiting for the first logged step.")
        fixture.move("0", 10, "training")
        self.browser.wait("performance.getEntriesByName('quern-drawn').length", "the first points are drawn")
        self.assertTrue(self.run_js("document.getElementById('empty').hidden"))

    def test_no_runs(self):
        self.server = Server(Fixture())
        self.addCleanup(self.server.close)
        self.open(self.server.url, drawn=False)
        self.browser.wait("quern.view", "a view")
        self.assertEqual(self.text("#empty"), "There is no run here yet.")

    def test_a_lost_connection_is_shown_and_found_again(self):
        fixture = self.serve("one")
        self.allowed = "ERR_"
        self.server.close()
        fixture.touch()
        self.browser.wait("quern.settings.connection === 'lost'", "the loss is noticed", 20)
        self.assertIn("The connection is lost; trying again.", self.text("#notices"))
        self.assertEqual(len(self.lines("loss")), 2)  # what was known stays
        again = Server(fixture, self.server.port)
        self.addCleanup(again.close)
        fixture.move("0", 1234 // 5 * 5)
        self.browser.wait("quern.settings.connection === 'live' && quern.view.runs[0].step === 1230", "the connection is back", 30)
        self.assertEqual(self.text("#notices"), "")

    def test_a_run_that_vanished_stays_and_is_named(self):
        fixture = self.serve("several")
        fixture.runs = fixture.runs[:2]
        fixture.touch()
        self.browser.wait("document.querySelector('#notices').innerText.includes('runs/muon')", "a notice")
        self.assertEqual({line["run"] for line in self.lines("loss")}, {"runs/first", "runs/wider", "runs/muon"})

    def test_events_of_the_run_are_listed_and_marked(self):
        fixture = self.serve("one")
        fixture.runs[0].events.append({"step": 4000, "seconds": 172.0, "kind": "damage", "text": "3 lines were skipped"})
        fixture.touch()
        self.browser.wait("document.querySelector('#notices').innerText.includes('3 lines were skipped')", "a notice")
        self.assertIn("resumed", self.text(".event-list"))
        left, top, width, height = self.box("loss")
        x = self.run_js("page.plots()[0].x.at(2200)")
        self.browser.mouse("mouseMoved", left + x, top + height / 2)
        self.frame()
        self.assertEqual(self.settings()["cursor"], 2200)


if __name__ == "__main__":
    unittest.main()
