"""How fast the page is with a million steps; the limits allow for a busy machine, docs/dashboard.md has measured figures."""
import unittest

from browser import PageTest
from fixture import Fixture
from views import Run, history

FRAMES = """new Promise(done => {{
  const times = [], node = page.plots()[0].node, box = node.getBoundingClientRect();
  let frame = 0, last = performance.now();
  const step = () => {{
    const start = performance.now();
    {action}
    draw_waiting();
    times.push(performance.now() - start);
    if (++frame < 60) requestAnimationFrame(step);
    else done(times.sort((a, b) => a - b));
  }};
  requestAnimationFrame(step);
}})"""
HOVER = "node.dispatchEvent(new PointerEvent('pointermove', {clientX: box.left + 80 + frame * 8, clientY: box.top + 50}));"
PAN = "page.move_range([200000 + frame * 3000, 600000 + frame * 3000], 0);"


class Speed(PageTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        run = history(Run("0", "runs/million", 1_000_000))
        cls.fixture = Fixture([run])
        cls.fixture.fixed = cls.fixture.view({})
        series = cls.fixture.fixed["runs"][0]["series"]
        assert series["loss"]["points"] == 1_000_000 and len(series["loss"]["value"]) == 2000

    def test_a_million_steps_open_in_a_second(self):
        self.serve(self.fixture)
        times = []
        for _ in range(3):
            self.open(self.server.url)
            times.append(self.run_js("performance.getEntriesByName('quern-drawn')[0].startTime"))
        print(f"opened and drawn after {min(times):.0f} ms")
        self.assertLess(min(times), 1000)
        self.assertGreater(len(self.lines("loss")[0]["x"]), 1900)

    def test_a_redraw_fits_into_a_frame(self):
        self.browser.size(1440, 2400)  # all charts are in the window
        self.serve(self.fixture)
        times = sorted(self.run_js("[...Array(15)].map(() => quern.redraw())"))
        print(f"all charts redrawn in {times[0]:.1f} to {times[-1]:.1f} ms")
        self.assertLess(times[0], 16)

    def test_hovering_and_moving_fit_into_a_frame(self):
        self.browser.size(1440, 2400)
        self.serve(self.fixture)
        for name, before, action in (("hover", "", HOVER), ("move", "page.set_range([200000, 600000])", PAN)):
            self.run_js(before or "1")
            times = self.run_js(FRAMES.format(action=action))
            print(f"{name}: median {times[30]:.1f} ms, 95% {times[57]:.1f} ms")
            self.assertLess(times[3], 16, name)


if __name__ == "__main__":
    unittest.main()
