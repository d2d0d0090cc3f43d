#!/usr/bin/env python3
"""The yardstick itself: what NMSE, worst position and exclusion mean, by hand-made numbers."""

import math
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from compare import ROUTING_GAP, compare  # noqa: E402  (found through the line above)

CLEAR = 1.0  # a gap that excludes nothing


class CompareTest(unittest.TestCase):
    def test_nmse_is_the_squared_difference_over_the_squared_reference(self):
        result = compare([[1.0, -1.0], [3.0, -3.0]], [[1.0, -1.0], [4.0, -4.0]], [CLEAR, CLEAR])
        self.assertAlmostEqual(result.nmse, 2.0 / 34.0)
        self.assertAlmostEqual(result.worst, 2.0 / 32.0)
        self.assertEqual((result.worst_position, result.compared, result.excluded), (1, 2, 0))

    def test_a_constant_added_to_a_row_changes_nothing(self):
        result = compare([[101.0, 99.0]], [[1.0, -1.0]], [CLEAR])
        self.assertEqual(result.nmse, 0.0)

    def test_positions_from_an_ambiguous_routing_on_are_left_out_and_counted(self):
        wrong = [[1.0, -1.0], [9.0, -9.0], [9.0, -9.0]]
        right = [[1.0, -1.0]] * 3
        result = compare(wrong, right, [CLEAR, ROUTING_GAP / 2, CLEAR])
        self.assertEqual((result.nmse, result.compared, result.excluded), (0.0, 1, 2))
        self.assertGreater(compare(wrong, right, [CLEAR, ROUTING_GAP, CLEAR]).nmse, 1.0)

    def test_nothing_left_to_compare_is_visible(self):
        self.assertEqual(compare([[1.0, 2.0]], [[1.0, 2.0]], [0.0]).compared, 0)

    def test_nan_and_infinity_are_infinitely_wrong(self):
        for bad in (math.nan, math.inf):
            for pair in (([[bad, 1.0]], [[2.0, 1.0]]), ([[2.0, 1.0]], [[bad, 1.0]])):
                self.assertEqual(compare(*pair, [CLEAR]).nmse, math.inf)

    def test_rows_must_pair_up(self):
        with self.assertRaises(ValueError):
            compare([[1.0]], [[1.0], [2.0]], [CLEAR, CLEAR])


if __name__ == "__main__":
    unittest.main()
