"""Tests of tasks/teaching/contrast.py and costs.py: what a contrast shows, says and estimates."""

import random
import unittest

from stream_test import CHAIN, SECTIONS, described, line

from contrast import MIN_GAIN  # isort: skip
from costs import FACTORS, Launch, drawn_factors, launch_us, program_us  # isort: skip
from lesson import Lesson  # isort: skip


class Contrasts(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        made = [line(number, "--contrast-share", 1) for number in range(40)]
        cls.lessons = [one for one in made if "contrast" in one]

    def test_are_most_lessons_that_have_variants_of_several_speeds(self):
        self.assertGreater(len(self.lessons), 15)

    def test_show_two_slower_variants_by_their_estimates(self):
        for one in self.lessons:
            self.assertEqual(one["documents"], [])
            first, second = one["contrast"]["shown"]
            self.assertLess(MIN_GAIN * first["estimate"], second["estimate"])
            shown = {s["document"].split(SECTIONS[2])[1] for s in (first, second)}
            self.assertFalse(one["contrast"]["document"].split(SECTIONS[2])[1] in shown)

    def test_have_the_program_of_a_variant_of_the_teacher(self):
        for one in self.lessons[:6]:
            lesson = Lesson(described(one["task"]), "cuda")
            blocks = {lesson.variant(n, 5).text.split(SECTIONS[1])[1] for n in range(20)}
            self.assertTrue(one["contrast"]["document"].split(SECTIONS[1])[1] in blocks)

    def test_say_what_is_shown_and_what_changes(self):
        for one in self.lessons:
            first, second = (f"{s['estimate']:.2f}x" for s in one["contrast"]["shown"])
            self.assertRegex(
                one["contrast"]["document"].split(SECTIONS[1])[0],
                rf"2 is faster than 1 \({second}, {first}\): .+\. Better than 2: .+\.$",
            )


class Estimates(unittest.TestCase):
    def launch(self, **changes):
        numbers = {"threads": 1 << 20, "read": 1 << 25, "written": 1 << 20, "passes": 1}
        words = {"name": "k", "computes": (), "division": "", "team": "warp", "block": 256}
        return launch_us(Launch(**{**words, **numbers, "functions": 0, **changes}), 1e6)

    def test_grow_with_what_a_launch_does(self):
        for change in (
            {"read": 1 << 26},
            {"written": 1 << 25},
            {"passes": 3},
            {"functions": 1 << 24},
            {"threads": 1 << 10},  # they leave most of the GPU idle
            {"team": "scattered"},
        ):
            self.assertGreater(self.launch(**change), self.launch(), change)

    def test_differ_between_lessons_as_to_which_division_is_faster(self):
        drawn = [drawn_factors(random.Random(number)) for number in range(200)]
        faster = sum(factors["warp"] > factors["block"] for factors in drawn) / len(drawn)
        self.assertTrue(0.3 < faster < 0.7, faster)
        for name, fitted in FACTORS.items():
            mean = sum(factors[name] for factors in drawn) / len(drawn)
            self.assertAlmostEqual(mean, fitted, delta=0.15)

    def test_prefer_one_kernel_to_one_for_each_result(self):
        lesson = Lesson(CHAIN, "cuda")
        by_launches = {}
        for n in range(3, 60):
            program = lesson.variant(n, 1).program
            if program is not None:
                us = program_us(program, {}, [])
                by_launches.setdefault(len(program.launches), []).append(us)
        self.assertLess(min(by_launches[1]), min(by_launches[3]))


if __name__ == "__main__":
    unittest.main()
