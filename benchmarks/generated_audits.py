"""Does an audit ever contradict itself or the truth? Thousands of generated audits.

Groups of 1 to 50,000 rows, with and without differences, weights, ties, atoms and strata. Verdict, intervals, p-values,
``--surely`` and ``--fail-above`` are checked against each other and against the truth.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

import numpy as np

from benchmarks import _audit_worlds as shapes
from benchmarks._audit_worlds import World
from fairtransport import GroupPolicy
from fairtransport._text import plain
from fairtransport.auditing import Inference, audit_histograms
from fairtransport.cli._limits import parse_limits

CLAIM = "Verdict, intervals, p-values and limits of an audit never contradict each other, and rarely the truth."
METRICS = ("wasserstein_disparity", "strong_demographic_disparity", "strong_pairwise_disparity")
MAX_ROWS = 50_000


@dataclass(frozen=True)
class Case:
    """A world, how it is audited, and the audit."""

    world: World
    options: dict
    audit: object


def draw_case(rng, *, max_rows=MAX_ROWS, n_replicates=60):
    """Draw a world and audit it: 2 to 14 groups of 1 to 50,000 rows, with and without differences."""
    world = _draw_world(rng, max_rows)
    options = {
        "inference": Inference(
            confidence=float(rng.choice([0.9, 0.95, 0.95, 0.99])),
            n_bootstrap=n_replicates,
            n_permutations=int(rng.choice([n_replicates, 2 * n_replicates])) + 40,
            random_state=int(rng.integers(2**31)),
        ),
        "materiality": float(rng.choice([0.0, 0.01, 0.02, 0.02, 0.05])),
        "thresholds": sorted(rng.choice([0.2, 0.3, 0.5, 0.7], rng.integers(1, 4), replace=False).tolist()),
        "groups": GroupPolicy(min_size=int(rng.choice([10, 30, 30, 100]))),
    }
    counted = world.count(rng, n_bins=1024)
    strata = None
    if rng.random() < 0.15:
        other = world.count(rng, n_bins=1024)
        strata = {"one": counted, "other": other}
        counted = counted + other
    return Case(world, options, audit_histograms(counted, strata=strata, **options))


def _draw_world(rng, max_rows):
    n_groups = int(rng.choice([2, 2, 2, 3, 4, 6, 9, 14]))
    largest = float(np.exp(rng.uniform(np.log(40), np.log(max_rows))))
    sizes = np.exp(rng.uniform(np.log(rng.choice([1.0, 20.0, largest / 3])), np.log(largest), n_groups))
    base = shapes.kumaraswamy(rng.uniform(0.5, 3), rng.uniform(0.8, 4))
    form = rng.choice(["plain", "plain", "zeros", "ones", "rounded", "two"])
    if form == "two":
        base = shapes.two_values(rng.uniform(0.1, 0.9))
    elif form == "rounded":
        base = shapes.rounded(base, int(rng.integers(3, 12)))
    elif form in {"zeros", "ones"}:
        base = shapes.with_atom(base, rng.uniform(0.1, 0.7), 0.0 if form == "zeros" else 1.0)
    quantiles = [base] * n_groups
    if rng.random() < 0.5:
        amount = float(rng.choice([0.005, 0.02, 0.05, 0.15]))
        kind = rng.choice(["shift", "scale", "tail", "one"])
        for index in range(n_groups):
            by = amount * rng.normal()
            if kind == "scale":
                quantiles[index] = shapes.scaled(base, max(0.1, 1 - 2 * abs(by)))
            elif kind == "tail":
                quantiles[index] = shapes.in_the_tail(base, 0.2, by)
            elif kind == "shift" or index == 0:
                quantiles[index] = shapes.shifted(base, by)
    weights = str(rng.choice(["none", "none", "none", "independent", "dependent"]))
    if weights == "dependent":
        sizes = np.minimum(sizes, 5000)
    return World("generated", tuple(quantiles), tuple(max(1, int(size)) for size in sizes), weights)


def contradictions(case):
    """Return what in an audit contradicts something else in it; nothing, if all is well."""
    audit, within = case.audit, {}
    if audit.within is not None:  # its verdict is about people in the same stratum
        within, audit = _within(audit), _among_all(audit)
    statements = {**_intervals(audit), **_verdict(audit), **_pairs(audit), **_rates(audit), **_words(audit)}
    return [text for text, holds in {**statements, **_limits(audit), **within}.items() if not holds]


def _judged(audit):
    sizes = audit.histograms.effective_sizes
    least = audit.settings.small_groups.min_size
    return [group.name for group, size in zip(audit.groups, sizes, strict=True) if size >= least]


def _established(audit):
    return audit.readings[METRICS[2]].p_value <= 1 - audit.settings.confidence


def _among_all(audit):
    """Return the same audit without its comparison within strata."""
    return replace(audit, within=None, settings=replace(audit.settings, strata=()))


def _within(audit):
    """Return statements about the comparison within strata, which the verdict is about."""
    verdict, part, materiality = audit.verdict, audit.within, audit.settings.materiality
    silent = verdict.status in {"too_few_rows", "constant"}
    statements = _readings(audit, part.readings, " within strata")
    if not part.readings or silent:
        return {**statements, "different where nothing is judged": not (silent and verdict.different)}
    p_value, pair = part.readings[METRICS[2]].p_value, part.clearest
    established = p_value <= 1 - audit.settings.confidence
    (zero,) = parse_limits(["conditional=0"], [], labelled=False, stratified=True)
    words = plain(verdict.sentence)
    claims_difference = verdict.status in {"matters", "different", "small"}
    return {
        **statements,
        "p-value of the verdict within strata": verdict.p_value == p_value,
        "different and p-value within strata": verdict.different == established,
        "interval of the pair and p-value within strata": (pair.estimate.low > 0) == established,
        "matters and interval within strata": verdict.matters is not True or pair.estimate.low >= materiality,
        "small and interval within strata": verdict.matters is not False or pair.estimate.high < materiality,
        "status within strata": verdict.different == claims_difference,
        "surely above 0 and verdict within strata": (zero.exceeded(audit, surely=True) is not None) == established,
        "words within strata": words.startswith("Among people in the same stratum"),
        "words and no difference within strata": ("no difference" in words) != claims_difference,
        "text within strata": words in " ".join(str(audit).split()),
    }


def _readings(audit, readings, kind=""):
    statements = {}
    for name in METRICS if readings else ():
        one = readings[name]
        rejects = one.p_value <= 1 - audit.settings.confidence
        statements[f"interval and p-value of {name}{kind}"] = (one.low > 0) == rejects
        statements[f"order of {name}{kind}"] = 0 <= one.low <= one.corrected <= one.high
    return statements


def _intervals(audit):
    statements = _readings(audit, audit.readings)
    one = audit.clearest.estimate
    statements["interval of the pair and p-value"] = (one.low > 0) == _established(audit)
    statements["order of the pair"] = 0 <= one.low <= one.value <= one.high
    return statements


def _verdict(audit):
    verdict, judged, pair = audit.verdict, _judged(audit), audit.clearest
    enough = len(judged) >= 2
    expected = {
        (True, True): "matters", (True, False): "small", (True, None): "different", (False, False): "alike",
        (False, None): "cannot_tell",
    }  # fmt: skip
    if audit.distinct_scores == 1:
        status = "constant"
    else:
        status = expected[verdict.different, verdict.matters] if enough else "too_few_rows"
    deciding = {pair.lower, pair.higher}
    for at in audit.thresholds:
        deciding |= {audit.groups[at.lowest].name, audit.groups[at.highest].name}
    low, high, materiality = pair.estimate.low, pair.estimate.high, audit.settings.materiality
    return {
        "judged groups": verdict.judged == tuple(judged),
        "groups set aside": set(verdict.set_aside) == {group.name for group in audit.groups} - set(judged),
        "a group that is not judged decides": not enough or deciding <= set(judged),
        "p-value of the verdict": verdict.p_value == audit.readings[METRICS[2]].p_value,
        "different and p-value": verdict.different == (enough and _established(audit)),
        "matters and interval": verdict.matters is not True or low >= materiality,
        "small and interval": verdict.matters is not False or high < materiality,
        "status": verdict.status == status,
        "order and mean difference": not verdict.ordered or pair.mean_difference.low > 0,
    }


def _pairs(audit):
    p_value, level = audit.readings[METRICS[2]].p_value, 1 - audit.settings.confidence
    tested = audit.pair_p_values[~np.isnan(audit.pair_p_values)]
    return {
        "a pair is more certain than the test of all": bool(np.all(tested >= p_value - 1e-12)),
        "pairs and the test of all": bool(np.any(tested <= level)) == (p_value <= level),
        "p-value of the pair": (audit.clearest.p_value <= level) == (p_value <= level),
        "the farthest pair": np.isclose(audit.farthest.distance, audit.distances[~np.isnan(audit.pair_p_values)].max()),
        "lower limit of the largest distance": audit.largest_distance.low == audit.clearest.estimate.low,
    }


def _rates(audit):
    statements = {}
    for at in audit.thresholds:
        ratio, difference = at.ratio, at.difference
        defined = at.four_fifths is not None
        excludes = ratio.low >= 0.8 or ratio.high < 0.8
        statements[f"conclusive at {at.threshold}"] = at.conclusive == (defined and excludes)
        statements[f"ratio at {at.threshold}"] = not defined or ratio.low <= ratio.value <= ratio.high
        statements[f"difference at {at.threshold}"] = difference.low <= difference.value <= difference.high
    apart = any(at.difference.low > 0 for at in audit.thresholds)
    silent = audit.verdict.status in {"too_few_rows", "constant"} or audit.verdict.different
    noted = any("alone, the interval of the difference" in point for point in audit.verdict.points)
    return {**statements, "a threshold that differs alone": noted == (apart and not silent)}


def _words(audit):
    verdict = audit.verdict
    words = plain(verdict.sentence)
    claimed = words.startswith("A difference of") or "groups are scored differently" in words.split(":")[0][:60]
    claimed &= not words.startswith("These rows cannot tell")
    return {
        "words and status": claimed == (verdict.status in {"matters", "different", "small"}),
        "words and no difference": ("no difference" in words.lower()) == (verdict.status in {"alike", "cannot_tell"}),
        "text": words in " ".join(str(audit).split()),
        "JSON": audit.to_dict()["verdict"]["sentence"] == words,
    }


def _limits(audit):
    statements = {}
    silent = audit.verdict.status == "too_few_rows"
    for alias, low, value in _limited(audit):
        for bound in (0.0, 0.9 * low, low, (low + value) / 2, value, 1.1 * value + 1e-6, 0.02):
            (limit,) = parse_limits([f"{alias}={bound!r}"], [], labelled=False)
            surely, above = (limit.exceeded(audit, surely=strict) is not None for strict in (True, False))
            statements[f"{alias}={bound}, surely"] = surely == (low > bound and not silent)
            statements[f"{alias}={bound}"] = above == (value > bound) and (above or not surely)
    (zero,) = parse_limits(["spdd=0"], [], labelled=False)
    surely = zero.exceeded(audit, surely=True) is not None
    constant = audit.verdict.status == "constant"
    return {**statements, "surely above 0 and verdict": constant or surely == audit.verdict.different}


def _limited(audit):
    for alias, name in (("wass1", METRICS[0]), ("sdd", METRICS[1]), ("spdd", METRICS[2])):
        yield alias, audit.readings[name].low, audit.readings[name].corrected
    yield "largest", audit.largest_distance.low, audit.largest_distance.value
    yield "mean", audit.mean_pairwise_distance.low, audit.mean_pairwise_distance.value


def claims(case):
    """Return, for each kind of claim that the verdict makes, whether it is false; only the claims that it makes."""
    audit = _among_all(case.audit)
    verdict = audit.verdict
    if verdict.status in {"too_few_rows", "constant"}:
        return {}
    compared = [index for index, group in enumerate(audit.groups) if group.judged]
    truth = case.world.truth(compared)
    names = [audit.groups[i].name for i in compared]
    lower, higher = names.index(verdict.lower), names.index(verdict.higher)
    largest = truth["distances"].max()
    slack = 2e-3 * largest + 1e-4
    found = {"a difference where there is none": verdict.different} if largest < 1e-9 else {}
    if verdict.matters is not None:
        wrong = largest < verdict.materiality - slack if verdict.matters else largest > verdict.materiality + slack
        found["matters" if verdict.matters else "does not matter"] = bool(wrong)
    if verdict.different and verdict.ordered:
        found["who is higher"] = bool(truth["means"][higher] < truth["means"][lower] - 1e-9)
    (limit,) = parse_limits([f"largest={float(largest + slack)!r}"], [], labelled=False)
    found["not surely above what is true"] = limit.exceeded(audit, surely=True) is not None
    exceeded = audit.clearest.estimate.low > truth["distances"][lower, higher] + slack
    short = audit.clearest.estimate.high < truth["distances"][lower, higher] - slack
    found["interval of the pair"] = bool(exceeded or short)
    return found


def run(report):
    n_audits = 20 if report.quick else 10_000
    found, made, wrong, statuses = Counter(), Counter(), Counter(), Counter()
    for number in range(n_audits):
        case = draw_case(np.random.default_rng([0, number]))
        statuses[case.audit.verdict.status] += 1
        for text in contradictions(case):
            found[text] += 1
            print(f"audit {number}: {text}", flush=True)
        for claim, is_wrong in claims(case).items():
            made[claim] += 1
            wrong[claim] += bool(is_wrong)
    report.data.update(
        audits=n_audits, contradictions=dict(found), statuses=dict(statuses),
        claims={claim: {"made": made[claim], "false": wrong[claim]} for claim in sorted(made)},
    )  # fmt: skip
    text = ", ".join(f"{claim} {wrong[claim]} of {made[claim]}" for claim in sorted(made))
    report.note(f"{n_audits:,} audits contradicted themselves {sum(found.values())} times; false claims: {text}.")
