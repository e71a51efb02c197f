"""The colours of style.css: enough contrast in both themes, and told apart without one kind of cones."""
import itertools
import re
import unittest

from assemble import FOLDER

# Machado, Oliveira and Fernandes (2009), severity 1, on linear RGB.
DEFICIENCIES = {
    "protanopia": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deuteranopia": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
    "tritanopia": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900)),
    "none": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
}


def colours():
    """name -> (light, dark), as linear RGB."""
    style = (FOLDER / "style.css").read_text()
    found = re.findall(r"--([\w-]+): light-dark\(#([0-9a-fA-F]{6}), #([0-9a-fA-F]{6})\)", style)
    return {name: (linear(light), linear(dark)) for name, light, dark in found}


def linear(text):
    values = [int(text[i:i + 2], 16) / 255 for i in (0, 2, 4)]
    return [value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4 for value in values]


def luminance(colour):
    return sum(weight * value for weight, value in zip((0.2126, 0.7152, 0.0722), colour))


def contrast(one, other):
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def oklab(colour):
    red, green, blue = [max(value, 0) for value in colour]
    l, m, s = ((0.4122214708 * red + 0.5363325363 * green + 0.0514459929 * blue) ** (1 / 3),
               (0.2119034982 * red + 0.6806995451 * green + 0.1073969566 * blue) ** (1 / 3),
               (0.0883024619 * red + 0.2817188376 * green + 0.6299787005 * blue) ** (1 / 3))
    return (0.2104542553 * l + 0.7936177850 * m - 0.0040720468 * s, 1.9779984951 * l - 2.4285922050 * m + 0.4505937099 * s,
            0.0259040371 * l + 0.7827717662 * m - 0.8086757660 * s)


def seen(colour, kind):
    return oklab([sum(factor * value for factor, value in zip(row, colour)) for row in DEFICIENCIES[kind]])


def distance(one, other):
    return sum((a - b) ** 2 for a, b in zip(one, other)) ** 0.5


class Colours(unittest.TestCase):
    def setUp(self):
        self.colours = colours()

    def test_contrast(self):
        """Text 4.5 and lines 3 to 1, as the accessibility guidelines (WCAG 2.2) require."""
        needed = {"ink": 7, "quiet": 4.5, "accent": 4.5, "bad": 4.5, "warn": 4.5, "good": 4.5}
        needed.update({f"series-{i}": 3 for i in range(8)})
        for theme in (0, 1):
            for name, least in needed.items():
                for ground in ("surface", "paper") if not name.startswith("series") else ("surface",):
                    found = contrast(self.colours[name][theme], self.colours[ground][theme])
                    self.assertGreaterEqual(found, least, (name, ground, "dark" if theme else "light"))

    def test_the_first_colours_differ_for_everyone(self):
        """The colours of two to eight runs, as distances in OKLab; 0.02 is just noticeable side by side."""
        for theme, kind in itertools.product((0, 1), DEFICIENCIES):
            places = [seen(self.colours[f"series-{i}"][theme], kind) for i in range(8)]
            for count, least in ((3, 0.12), (4, 0.08), (8, 0.05)):
                for a, b in itertools.combinations(range(count), 2):
                    self.assertGreater(distance(places[a], places[b]), least, (a, b, kind, "dark" if theme else "light"))

    def test_the_heat_scale_is_ordered_by_lightness(self):
        for theme, sign in ((0, -1), (1, 1)):
            light = [oklab(self.colours[f"heat-{i}"][theme])[0] * sign for i in range(6)]
            steps = [later - earlier for earlier, later in zip(light, light[1:])]
            self.assertGreater(min(steps), 0.08, light)


if __name__ == "__main__":
    unittest.main()
