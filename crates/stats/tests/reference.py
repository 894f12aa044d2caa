"""The p-values and intervals of SciPy for pairs of samples: JSON from standard input to standard
output."""

import json
import sys

import numpy
from scipy import stats


def shift(a, b):
    """The median difference of all pairs (Hodges-Lehmann)."""
    return numpy.median(numpy.subtract.outer(b, a))


def mean(a, b):
    return numpy.mean(b) - numpy.mean(a)


def compare(pair):
    a, b = numpy.array(pair["a"]), numpy.array(pair["b"])
    ties = len(set(pair["a"] + pair["b"])) < len(a) + len(b)
    is_exact = not ties and len(a) * len(b) <= 1000
    test = stats.mannwhitneyu(a, b, method="exact" if is_exact else "asymptotic")
    interval = stats.bootstrap(
        (a, b),
        {"median": shift, "mean": mean}[pair["statistic"]],
        vectorized=False,
        n_resamples=4999,
        method="BCa",
        random_state=1,
    ).confidence_interval
    # There is none if the difference is the same without any one of the values.
    is_known = not numpy.isnan(interval.low)
    bounds = [interval.low, interval.high] if is_known else None
    return {"p": test.pvalue, "bounds": bounds}


json.dump([compare(pair) for pair in json.load(sys.stdin)], sys.stdout)
