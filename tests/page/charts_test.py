"""The charts in a browser: what they show, and how pointer and keys move through them."""
import unittest

from browser import PageTest


class Charts(PageTest):
    def test_panels_with_data_are_shown_and_others_are_not(self):
        self.serve("one")
        shown = self.run_js("[...document.querySelectorAll('.panel:not([hidden])')].map(node => node.dataset.panel)")
        self.assertEqual(shown, ["loss", "details", "speed", "efficiency", "rate", "gradient", "memory", "operations", "health",
                                 "samples", "events"])
        self.assertEqual(self.run_js("[...document.querySelectorAll('.panel[hidden]')].map(node => node.dataset.panel)"), ["nothing"])

    def test_a_curve_has_the_values_of_the_view_and_its_gaps(self):
        fixture = self.serve("one")
        loss = self.lines("loss")[0]
        series = fixture.view({})["runs"][0]["series"]["loss"]
        self.assertEqual(loss["x"], series["step"])
        self.assertIn(None, series["value"])
        for drawn, value in zip(loss["value"], series["value"]):
            self.assertEqual(drawn, value)

    def test_ink_is_where_the_curve_is(self):
        self.serve("one")
        self.browser.run("page.set_smoothing(0)")
        self.frame()
        found = self.run_js("""(() => {
          const plot = page.plots()[0], line = plot.model.lines[0], ratio = plot.base.width / plot.width;
          const image = plot.base.getContext('2d');
          const alpha = (x, y) => image.getImageData(Math.round(plot.x.at(x) * ratio), Math.round(plot.y.at(y) * ratio), 1, 1).data[3];
          const at = [100, 300, 600, 900].map(i => alpha(line.x[i], line.value[i]));
          return {at, above: alpha(line.x[600], line.value[600] * 2.1)};
        })()""")
        self.assertTrue(all(alpha > 0 for alpha in found["at"]), found)
        self.assertEqual(found["above"], 0)

    def test_hover_shows_values_in_every_chart(self):
        self.serve("one")
        left, top, width, height = self.box("loss")
        self.browser.mouse("mouseMoved", left + width / 2, top + height / 2)
        self.frame()
        cursor = self.settings()["cursor"]
        self.assertGreater(cursor, 1500)
        for panel in ("loss", "speed", "rate"):
            line = self.lines(panel)[0]
            self.assertIn(cursor, line["x"])
            value = line["value"][line["x"].index(cursor)]
            shown = self.run_js(f"document.querySelector('[data-panel=\"{panel}\"] .legend .value').innerText")
            self.assertEqual(shown, self.run_js(f"format_value({value})"))
        self.browser.mouse("mouseMoved", 3, 3)
        self.frame()
        self.assertIsNone(self.settings()["cursor"])

    def test_a_drag_zooms_all_charts_and_a_double_click_resets(self):
        self.serve("one")
        left, top, width, height = self.box("loss")
        y = top + height / 2
        self.browser.mouse("mousePressed", left + width * 0.4, y, 1, 1)
        self.browser.mouse("mouseMoved", left + width * 0.5, y, 1)
        self.browser.mouse("mouseMoved", left + width * 0.6, y, 1)
        self.browser.mouse("mouseReleased", left + width * 0.6, y, 0, 1)
        lo, hi = self.settings()["range"]
        self.assertAlmostEqual((hi - lo) / 5000, 0.2, delta=0.03)
        self.assertTrue(all(chart["domain"] == [lo, hi] for chart in self.run_js("quern.charts()")))
        self.browser.mouse("mousePressed", left + width * 0.4, y, 1, 1)
        for share in (0.45, 0.5, 0.55):
            self.browser.mouse("mouseMoved", left + width * share, y, 1, shift=True)
        self.browser.mouse("mouseReleased", left + width * 0.55, y, 0, 1)
        for clicks in (1, 2):
            self.browser.mouse("mousePressed", left + 90, y, 1, clicks)
            self.browser.mouse("mouseReleased", left + 90, y, 0, clicks)
        self.assertIsNone(self.settings()["range"])

    def test_shift_and_drag_move_the_range(self):
        self.serve("one")
        self.run_js("page.set_range([1000, 2000])")
        left, top, width, height = self.box("loss")
        y = top + height / 2
        self.browser.mouse("mousePressed", left + width * 0.5, y, 1, 1, shift=True)
        self.browser.mouse("mouseMoved", left + width * 0.6, y, 1, shift=True)
        self.browser.mouse("mouseMoved", left + width * 0.7, y, 1, shift=True)
        self.browser.mouse("mouseReleased", left + width * 0.7, y, 0, 1, shift=True)
        lo, hi = self.settings()["range"]
        self.assertAlmostEqual(hi - lo, 1000, places=3)
        self.assertAlmostEqual(lo, 780, delta=60)

    def test_two_fingers_zoom_and_one_reads(self):
        self.browser.size(390, 844, 2, mobile=True)
        self.serve("one")
        left, top, width, height = self.box("loss")

        def touch(kind, *shares):
            self.browser.call("Input.dispatchTouchEvent", type=kind, touchPoints=[
                {"x": left + width * share, "y": top + height / 2, "id": i} for i, share in enumerate(shares)])
        touch("touchStart", 0.4)
        touch("touchMove", 0.5)
        touch("touchEnd")
        self.assertIsNotNone(self.settings()["cursor"])  # stays, to be read without a finger on it
        self.assertIsNone(self.settings()["range"])
        touch("touchStart", 0.4, 0.6)
        for spread in (0.12, 0.14, 0.16, 0.2):
            touch("touchMove", 0.5 - spread, 0.5 + spread)
        touch("touchEnd")
        lo, hi = self.settings()["range"]
        self.assertAlmostEqual((hi - lo) / 5000, 0.5, delta=0.08)

    def test_keys(self):
        self.serve("one")
        self.focus("loss")
        self.browser.key("ArrowLeft")
        last = self.settings()["cursor"]
        self.assertEqual(last, 5000)  # the first press goes to the last point
        self.browser.key("ArrowLeft", shift=True)
        self.assertEqual(self.settings()["cursor"], last - 50)
        self.assertRegex(self.text("#announcer"), r"\Astep 4,950: training 1\.\d+, validation 1\.\d+\Z")
        self.browser.key("Home")
        self.assertEqual(self.settings()["cursor"], 5)
        self.browser.key("End")
        self.browser.key("+")
        lo, hi = self.settings()["range"]
        self.assertAlmostEqual(hi - lo, 2500, delta=10)
        self.browser.key("[")
        self.assertLess(self.settings()["range"][0], lo)
        self.browser.key("-")
        self.browser.key("0")
        self.assertIsNone(self.settings()["range"])
        self.browser.key("l")
        self.assertTrue(self.run_js("quern.charts().find(chart => chart.panel === 'loss').log"))
        self.assertTrue(self.run_js("quern.charts().find(chart => chart.panel === 'gradient').log"))  # as its panel says
        for axis in ("tokens", "time", "step"):
            self.browser.key("x")
            self.assertEqual(self.settings()["axis"], axis)
        self.browser.key("o")
        self.assertTrue(self.settings()["robust"])
        self.browser.key("s")
        self.assertEqual(self.settings()["smoothing"], 0.85)
        self.browser.key("t")
        self.assertEqual(self.run_js("document.querySelectorAll('[data-panel=\"loss\"] .values tbody tr').length"), 40)
        self.browser.key("?")
        self.assertTrue(self.run_js("document.getElementById('keys').open"))
        self.browser.key("x")
        self.assertEqual(self.settings()["axis"], "step")  # the dialog has the keys

    def test_the_focused_chart_is_visibly_so(self):
        self.serve("one")
        self.focus("loss")
        self.browser.key("ArrowLeft")
        self.assertEqual(self.run_js("getComputedStyle(document.activeElement).outlineStyle"), "solid")

    def test_a_zoom_is_kept_when_the_x_axis_changes(self):
        self.serve("one")
        self.run_js("page.set_range([1000, 2000])")
        self.browser.key("x")
        lo, hi = self.settings()["range"]
        self.assertAlmostEqual(lo, 1000 * 2048, delta=5 * 2048)
        self.assertAlmostEqual(hi, 2000 * 2048, delta=5 * 2048)

    def test_outliers_do_not_stretch_a_robust_axis(self):
        self.serve("one")
        top = "page.plots().find(plot => plot.node.closest('.panel').dataset.panel === 'speed').y_axis()"
        everything = self.run_js(top)
        self.run_js("page.toggle_robust()")
        robust = self.run_js(top)
        self.assertLess(everything["lo"], 36000)
        self.assertGreater(robust["lo"], everything["lo"])

    def test_several_runs_share_the_axes(self):
        self.serve("several")
        loss = self.lines("loss")
        self.assertEqual([line["run"] for line in loss], ["runs/first"] * 2 + ["runs/wider"] * 2 + ["runs/muon"] * 2)
        self.assertEqual(len({line["colour"] for line in loss}), 3)
        rows = self.run_js("[...document.querySelectorAll('#runs tbody tr')].map(row => row.innerText.split(/\\s*\\t\\s*/))")
        self.assertEqual([row[0].strip() for row in rows], ["runs/first", "runs/wider", "runs/muon"])
        self.assertEqual(len(self.run_js("[...document.querySelectorAll('#runs .winner')].map(cell => cell.innerText)")), 2)  # of loss and validation
        self.run_js("document.querySelector('#chips [data-run=\"1\"]').click()")
        self.assertEqual({line["run"] for line in self.lines("loss")}, {"runs/first", "runs/muon"})
        self.browser.key("n")
        self.assertEqual(self.text("h1"), "runs/wider")
        self.assertEqual(len(self.lines("loss")), 6)  # what is selected is shown

    def test_a_key_of_the_legend_switches_its_series(self):
        self.serve("one")
        self.run_js("document.querySelector('[data-panel=\"loss\"] .key').click()")
        self.assertEqual([line["shown"] for line in self.lines("loss")], [False, True])

    def test_shares_are_stacked_and_named_in_percent(self):
        self.serve("selfplay")
        self.box("results")
        self.frame()
        values = self.run_js("[...document.querySelectorAll('[data-panel=\"results\"] .legend .value')].map(node => node.innerText)")
        self.assertEqual(len(values), 3)
        self.assertAlmostEqual(sum(float(value.rstrip("%")) for value in values), 100, delta=0.2)

    def test_heat_map_reads_values_by_key(self):
        fixture = self.serve("one")
        self.focus("health")
        self.browser.key("ArrowRight")
        self.browser.key("ArrowDown")
        self.browser.key("ArrowDown")
        self.frame()
        heat = fixture.view({})["runs"][0]["heatmaps"]["health"]
        shown = self.text('[data-panel="health"] .legend > .value')
        value = self.run_js(f"format_value({heat['measures']['norm'][2][-1]})")
        self.assertEqual(shown, f"{heat['rows'][2]}: {value}")
        self.assertTrue(self.text("#announcer").endswith(f"{heat['rows'][2]} {value}"))

    def test_samples_follow_the_newest_until_another_is_chosen(self):
        self.serve("one")
        self.assertIn("step 5,000", self.text('[data-panel="samples"] .stepper'))
        self.run_js("document.querySelector('[data-panel=\"samples\"] .stepper button').click()")
        self.assertIn("step 4,500", self.text('[data-panel="samples"] .stepper'))

    def test_the_theme_follows_the_system_and_then_the_choice(self):
        self.serve("one")
        background = "getComputedStyle(document.body).backgroundColor"
        light = self.run_js(background)
        self.browser.prefer("dark")
        self.browser.wait(f"{background} !== '{light}'", "dark colours")
        self.assertTrue(self.settings()["dark"])
        self.browser.key("d")
        self.assertEqual(self.run_js(background), light)
        self.open(self.server.url)
        self.assertEqual(self.run_js(background), light)  # remembered
        self.run_js("localStorage.clear()")

    def test_nothing_is_wider_than_a_phone(self):
        for kind in ("one", "several", "hostile"):
            self.browser.size(360, 780, 2, mobile=True)
            self.serve(kind)
            self.assertEqual(self.run_js("document.documentElement.scrollWidth"), 360, kind)

    def test_everything_that_can_be_pressed_has_a_name(self):
        self.serve("several")
        nameless = self.run_js("""[...document.querySelectorAll('button, input, select, [tabindex="0"]')]
          .filter(node => !node.getAttribute('aria-label') && !node.innerText?.trim() && !node.labels?.length)
          .map(node => node.outerHTML)""")
        self.assertEqual(nameless, [])

    def test_the_upper_canvas_is_not_printed(self):
        """Chromium's PDF loses a canvas that lies below a transparent one."""
        self.serve("one")
        self.browser.call("Emulation.setEmulatedMedia", media="print")
        shown = self.run_js("[...document.querySelectorAll('.plot canvas')].map(node => getComputedStyle(node).display === 'none')")
        self.browser.call("Emulation.setEmulatedMedia", media="")
        self.assertEqual(shown, [False, True] * (len(shown) // 2))

    def test_printing_shows_every_chart_in_light_colours(self):
        self.browser.prefer("dark")
        self.serve("one")
        self.run_js("print_mode(true)")
        drawn = self.run_js("page.plots().map(plot => [plot.stale, plot.base.width > 2 * plot.width])")
        self.assertTrue(all(not stale and sharp for stale, sharp in drawn), drawn)
        self.assertFalse(self.settings()["dark"])
        self.run_js("print_mode(false)")
        self.assertTrue(self.settings()["dark"])


if __name__ == "__main__":
    unittest.main()
