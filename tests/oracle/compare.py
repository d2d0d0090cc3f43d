"""How logits are compared: the definitions of NMSE, worst position and excluded positions."""

import math
from dataclasses import dataclass

# Rounding can pick another expert where two are this close in probability, and then every later row differs.
ROUTING_GAP = 1e-5


@dataclass
class Comparison:
    """NMSE over the compared positions, the worst single one, and how many were left out."""

    nmse: float
    worst: float
    worst_position: int
    compared: int
    excluded: int


def centred(row):
    """The row as doubles with its mean removed: a constant added to all logits changes no probability."""
    mean = math.fsum(row) / len(row)
    return [x - mean for x in row]


def row_errors(ours, theirs):
    """(sum of squared differences, sum of squares of theirs) of two rows with their means removed."""
    a, b = centred(ours), centred(theirs)
    return math.fsum((x - y) ** 2 for x, y in zip(a, b)), math.fsum(y * y for y in b)


def first_ambiguous(gaps):
    """The first position whose routing gap is too small to compare from there on; len(gaps) if there is none."""
    return next((position for position, gap in enumerate(gaps) if gap < ROUTING_GAP), len(gaps))


def compare(ours, theirs, gaps):
    """ours, theirs: one row of logits a position; gaps: the smallest routing gap of each position.

    NMSE = sum (a - b)^2 / sum b^2. A position after an ambiguous routing decision, that one included, is left
    out: its state may hold the other expert's answer.
    """
    if not len(ours) == len(theirs) == len(gaps):
        raise ValueError(f"{len(ours)} rows against {len(theirs)}, {len(gaps)} gaps")
    n = first_ambiguous(gaps)
    errors = [row_errors(a, b) for a, b in zip(ours[:n], theirs[:n])]
    if not errors:
        return Comparison(0.0, 0.0, -1, 0, len(gaps))
    ratios = [ratio(error, power) for error, power in errors]
    worst = max(range(n), key=lambda position: ratios[position])
    total = ratio(math.fsum(e for e, _ in errors), math.fsum(p for _, p in errors))
    return Comparison(total, ratios[worst], worst, n, len(gaps) - n)


def ratio(error, power):
    """error / power, where NaN counts as infinitely wrong and equal rows of zeros as right."""
    if math.isnan(error) or math.isnan(power) or math.isinf(error):
        return math.inf
    if power == 0.0:
        return 0.0 if error == 0.0 else math.inf
    return error / power
