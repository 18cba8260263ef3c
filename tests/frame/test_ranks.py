"""Two samples by their ranks, against counts by hand and published tables."""

from __future__ import annotations

import math

from sojourn.frame.statistics import fewest, shift


def test_the_interval_of_a_shift_leaves_out_as_many_differences_at_each_end():
    # Of the 252 choices of 5 ranks in 10, U is at most 2 in 4, 1.6 %, and at most 3 in 7, 2.8 %: the interval of 95 %
    # begins at the third of the 25 differences, which are 6 to 10, 16 to 20, and so on to 50.
    found = shift([0.0, 1.0, 2.0, 3.0, 4.0], [10.0, 20.0, 30.0, 40.0, 50.0], 0.95)
    assert (found.low, found.middle, found.high, found.n) == (8.0, 28.0, 48.0, 5)


def test_of_three_values_each_there_is_no_interval():
    # 1 choice in 20 is already 5 %; of 4 values each it is 1 in 70.
    found = shift([1.0, 2.0, 3.0], [4.0, 5.0, 6.0], 0.95)
    assert (found.low, found.middle, found.high) == (-math.inf, 3.0, math.inf)
    assert fewest(0.95) == 4
    assert shift([], [1.0], 0.95).n == 0
