"""Claims judged against runs, and what studies are made of."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec import structs

from sojourn.files.typed import Texts
from sojourn.studies import Verdict, available, find, fullrun, report
from sojourn.studies.claims import load_claims
from sojourn.studies.evaluate import instances
from sojourn.studies.grid import Alias, Cell, Grid
from sojourn.studies.measures import Measure, Single, Values, quantile_level
from sojourn.studies.recipe import Published, Reading, ReadingOf, Study, in_axis_unit
from sojourn.studies.verdict import cases, judge


class Fake(Measure):
    """A measure whose run is its sample."""

    def sample(self, run):
        return run


CLAIM = """
[[claim]]
id = "c"
experiment = "e"
kind = "number"
check = "auto"
statement = "It is so."
metric = "delay"
statistic = "median"
unit = "ms"
qdisc = "a, b"
"""


def study_in(tmp_path: Path, reading: Reading | None = None, **more) -> Study:
    """A study with its claims in a folder, one of which may have a reading."""
    own = (ReadingOf(claim=Texts(["c"]), **structs.asdict(reading)),) if reading else ()
    return Study(name="s", folder=tmp_path, title="S", source="", reading=own, **more)


def verdict(tmp_path: Path, claim: str, cells, *, reading=None, unavailable="", derived=None):
    """The judgement of one claim over ``{(scheme, flows): delay}``; with no cells, the experiment was not run."""
    (tmp_path / "claims.toml").write_text(CLAIM + claim, encoding="utf-8")
    experiment = Published("e", "", (), "{scheme}", {}, {}, {}, unavailable)
    study = study_in(tmp_path, reading, derived=derived or {}, experiments=(experiment,))
    found = [Cell(scheme, {"flows": float(flows)}, (Single(value),)) for (scheme, flows), value in cells.items()]
    grid = Grid(found, {"delay": Fake("sojourn_ms", "ms", "")}, {"per_pair": Alias("flows", 0.25)}, {"rtt": 9})
    (judgement,) = judge(study, {"e": grid} if cells else {})
    return judgement


def test_a_number_within_its_tolerance_is_reproduced(tmp_path):
    # 10 ± 10 %: 11 is the last that counts.
    judgement = verdict(tmp_path, "value = 10\ntol_rel = 0.1", {("a", 4): 11.0})
    assert (judgement.verdict, judgement.measured, judgement.published) == ("reproduced", "11 ms", "10 ms (±10%)")
    assert verdict(tmp_path, "value = 10\ntol_rel = 0.1", {("a", 4): 11.2}).verdict == Verdict.NOT_REPRODUCED


def test_every_number_of_a_claim_has_to_agree(tmp_path):
    # 11 ms is within 10 ± 10 %; twice that, 22, is within 20 ± 10 % and not within 30 ± 10 %.
    derived = {"both": "2 * each.delay.median"}
    claim = 'value = 10\ntol_rel = 0.1\nalso = [{{ metric = "both", unit = "ms", value = {}, tol_rel = 0.1 }}]'
    judgement = verdict(tmp_path, claim.format(20), {("a", 4): 11.0}, derived=derived)
    assert (judgement.verdict, judgement.measured) == ("reproduced", "11 ms; both 22 ms")
    assert judgement.published == "10 ms (±10%); both 20 ms (±10%)"
    missed = verdict(tmp_path, claim.format(30), {("a", 4): 11.0}, derived=derived)
    assert (missed.verdict, missed.cause) == ("not reproduced", "unexplained")
    assert "both outside the tolerance" in missed.reason


def test_a_metric_is_not_measured_where_the_constant_that_it_adds_is_missing():
    run = Single(3.0)
    measures = {"delay": Fake("sojourn_ms", "ms", "", plus={"wire_ms": 1})}
    wired = Grid([Cell("a", {}, (run,))], measures, {}, {"wire_ms": 2})
    assert wired.of_repeats("a", "delay", "median", {}) == (5.0,)
    assert Grid(wired.cells, measures, {}, {}).of_repeats("a", "delay", "median", {}) == ()


@pytest.mark.parametrize(
    ("claim", "within", "outside"),
    [("value = 10\ntol_rel = 0.1\ntol_abs = 3", (7.0, 13.0), (6.9, 13.1)),
     ("value = 10\ntol_rel = 0.3\ntol_abs = 1", (7.0, 13.0), (6.9, 13.1))],
)  # fmt: skip
def test_the_wider_of_two_tolerances_counts_and_not_their_sum(tmp_path, claim, within, outside):
    for delays, expected in ((within, "reproduced"), (outside, "not reproduced")):
        for delay in delays:
            assert verdict(tmp_path, claim, {("a", 4): delay}).verdict == expected


def test_a_range_is_widened_at_both_ends(tmp_path):
    claim = "min = 10\nmax = 20\ntol_rel = 0.1"
    assert verdict(tmp_path, claim, {("a", 4): 9.0, ("b", 4): 22.0}).verdict == "reproduced"
    assert verdict(tmp_path, claim, {("a", 4): 8.9, ("b", 4): 22.0}).verdict == "not reproduced"


def test_a_bound_is_relaxed_on_its_own_side_only(tmp_path):
    claim = 'bound = "<="\nvalue = 10\ntol_rel = 0.1'
    assert verdict(tmp_path, claim, {("a", 4): 11.0}).verdict == "reproduced"
    assert verdict(tmp_path, claim, {("a", 4): 0.0}).verdict == "reproduced"
    assert verdict(tmp_path, claim, {("a", 4): 11.5}).verdict == "not reproduced"


def test_the_share_of_cells_that_must_hold_is_the_claims_own(tmp_path):
    cells = {("a", 4): 1.0, ("b", 4): 2.0, ("a", 16): 1.0, ("b", 16): 2.0, ("a", 64): 3.0, ("b", 64): 2.0}
    relation = 'relation = "a.delay.median < b.delay.median"\n'
    assert verdict(tmp_path, relation + "hold_min = 0.6", cells).verdict == "reproduced"
    judgement = verdict(tmp_path, relation + "hold_min = 0.7", cells)
    assert judgement.verdict == "not reproduced"
    assert judgement.measured == "holds in 2 of 3; not at flows=64"


def test_a_share_that_is_met_exactly_suffices_whatever_rounding_does(tmp_path):
    # 0.28 times 25 is 7.000000000000001 in floating point; 7 of 25 are 28 %.
    cells = {("a", flows): 1.0 for flows in range(25)} | {("b", flows): 2.0 * (flows < 7) for flows in range(25)}
    judgement = verdict(tmp_path, 'relation = "a.delay < b.delay"\nhold_min = 0.28', cells)
    assert judgement.measured.startswith("holds in 7 of 25")
    assert judgement.verdict == "reproduced"


def test_a_claim_of_which_a_number_was_not_run_is_not_judged_by_the_others(tmp_path):
    # The first number misses; the second is about a place that nobody ran.
    derived = {"other": "each.delay[flows=99]"}
    claim = 'value = 10\nalso = [{ metric = "other", unit = "ms", value = 10 }]'
    assert verdict(tmp_path, claim, {("a", 4): 20.0}, derived=derived).verdict == Verdict.NOT_RUN


def test_a_condition_selects_the_cells(tmp_path):
    cells = {("a", 4): 1.0, ("a", 16): 50.0}
    assert verdict(tmp_path, "value = 1\ncondition = { flows = 4 }", cells).verdict == "reproduced"
    assert verdict(tmp_path, "value = 1\ncondition = { per_pair = [1] }", cells).verdict == "reproduced"
    assert verdict(tmp_path, "value = 1\ncondition = { rtt = 9, flows = 4 }", cells).verdict == "reproduced"


def test_a_condition_on_something_that_was_not_varied_is_not_comparable(tmp_path):
    judgement = verdict(tmp_path, "value = 1\ncondition = { depth = 4 }", {("a", 4): 1.0})
    assert judgement.verdict == Verdict.NOT_COMPARABLE
    assert "'depth'" in judgement.reason


def test_a_place_that_was_not_run_is_not_run(tmp_path):
    judgement = verdict(tmp_path, "value = 1\ncondition = { flows = 5 }", {("a", 4): 1.0})
    assert judgement.verdict == Verdict.NOT_RUN


def test_an_experiment_that_cannot_be_run_says_why(tmp_path):
    judgement = verdict(tmp_path, "value = 1", {}, unavailable="needs a radio")
    assert (judgement.verdict, judgement.reason) == (Verdict.NOT_RUN, "needs a radio")
    assert "was not run" in verdict(tmp_path, "value = 1", {}).reason


@pytest.mark.parametrize("check", ["cited", "manual", "setup", "derived"])
def test_what_no_run_can_show_is_not_comparable(tmp_path, check):
    claim = CLAIM.replace("auto", check)
    (tmp_path / "claims.toml").write_text(claim + "value = 1", encoding="utf-8")
    study = study_in(tmp_path)
    assert judge(study, {})[0].verdict == Verdict.NOT_COMPARABLE


def test_a_reading_replaces_what_is_not_formal(tmp_path):
    reading = Reading(because="as a ratio", measure="100 * (1 - a.delay / b.delay)")
    judgement = verdict(tmp_path, "value = 75", {("a", 4): 1.0, ("b", 4): 4.0}, reading=reading)
    assert (judgement.verdict, judgement.measured) == ("reproduced", "75 ms")
    assert "as a ratio" in judgement.reason


def test_several_relations_count_each(tmp_path):
    relation = 'relation = "the smaller the better"\nhold_min = '
    reading = Reading(because="", relations=("a.delay.median < 2", "a.delay.median < 3", "a.delay.median < 4"))
    cells = {("a", 4): 2.5}
    assert verdict(tmp_path, relation + "0.6", cells, reading=reading).verdict == "reproduced"
    judgement = verdict(tmp_path, relation + "0.7", cells, reading=reading)
    assert (judgement.verdict, judgement.measured.split(";")[0]) == ("not reproduced", "holds in 2 of 3")


def test_what_was_judged_is_shown_and_not_the_claims_sketch(tmp_path):
    cells = {("a", 4): 1.0, ("b", 4): 4.0, ("a", 16): 9.0, ("b", 16): 4.0}
    claim = 'relation = "a.delay small, and falling"\ncondition = { flows = [4] }'
    reading = Reading(because="", relation="a.delay < b.delay")
    shown = verdict(tmp_path, claim, cells, reading=reading)
    assert (shown.published, shown.judged_as, shown.is_reading) == ("a.delay < b.delay", "at flows=4", True)
    number = Reading(because="", measure="b.delay - a.delay", cells=({"flows": 4},), only_where="b.delay > 0")
    shown = verdict(tmp_path, "value = 3\ntol_abs = 1", cells, reading=number)
    assert shown.published == "3 ms (±1 ms)"
    assert shown.judged_as == "b.delay - a.delay, at flows=4, where b.delay > 0"
    assert report.published(shown) == "3 ms (±1 ms), as b.delay - a.delay, at flows=4, where b.delay > 0"


def test_both_tolerances_are_shown(tmp_path):
    shown = verdict(tmp_path, "value = 0\ntol_rel = 0.8\ntol_abs = 4", {("a", 4): 4.0})
    assert (shown.verdict, shown.published) == ("reproduced", "0 ms (±80% or ±4 ms)")
    shown = verdict(tmp_path, 'bound = ">"\nvalue = 9\ntol_rel = 0.1\ntol_abs = 4', {("a", 4): 6.0})
    assert (shown.published, shown.tolerance) == ("> 9 ms", "± 10% or ± 4 ms")


@pytest.mark.parametrize(
    ("claim", "effect", "wide"),
    [("value = 700\ntol_rel = 0.8", None, "140 to 1.26e+03 ms"),
     ("value = 700\ntol_rel = 0.49", None, ""),
     ("min = 10\nmax = 30\ntol_abs = 5", None, "5 to 35 ms"),
     ("min = 11\nmax = 30\ntol_abs = 5", None, ""),
     ('bound = ">"\nvalue = 10\ntol_rel = 0.6', None, "> 4 ms"),
     ('bound = "<="\nvalue = 10\ntol_rel = 0.4', None, ""),
     ("value = 0\ntol_abs = 4", None, "-4 to 4 ms"),
     # 20 % of 100 are 20: less than half of the number, more than half of a difference of 13.
     ("value = 100\ntol_rel = 0.2", 13, "80 to 120 ms"),
     ("value = 100\ntol_rel = 0.2", 50, "")],
)  # fmt: skip
def test_a_tolerance_of_half_of_the_effect_is_told(tmp_path, claim, effect, wide):
    judgement = verdict(tmp_path, claim, {("a", 4): 100.0}, reading=Reading(because="", effect=effect))
    assert judgement.wide == wide
    assert ("wide tolerance: accepts" in judgement.basis) == bool(wide)


def test_what_a_reading_makes_of_a_claim_by_hand_is_judged(tmp_path):
    def judged_by(reading: Reading, unavailable: str = ""):
        (tmp_path / "claims.toml").write_text(CLAIM.replace("auto", "manual"), encoding="utf-8")
        experiment = Published("e", "", (), "{scheme}", {}, {}, {}, unavailable)
        study = study_in(tmp_path, reading, experiments=(experiment,))
        cells = [Cell(name, {}, (Single(value),)) for name, value in (("a", 1.0), ("b", 2.0))]
        (judgement,) = judge(study, {"e": Grid(cells, {"delay": Fake("sojourn_ms", "ms", "")})})
        return judgement

    assert judged_by(Reading(because="", relation="a.delay < b.delay")).verdict == "reproduced"
    assert judged_by(Reading(because="", relation="a.delay > b.delay")).verdict == "not reproduced"
    assert judged_by(Reading(because="needs eyes")).reason == "needs eyes"
    assert judged_by(Reading(because=""), unavailable="a radio link").reason == "a radio link"


def test_a_half_formal_relation_without_a_reading_is_not_comparable(tmp_path):
    judgement = verdict(tmp_path, 'relation = "local maxima of a.delay after each time"', {("a", 4): 1.0})
    assert judgement.verdict == Verdict.NOT_COMPARABLE


def test_two_claims_cannot_share_an_id(tmp_path):
    (tmp_path / "claims.toml").write_text(CLAIM + CLAIM, encoding="utf-8")
    with pytest.raises(ValueError, match="two claims"):
        load_claims(tmp_path / "claims.toml")


@pytest.mark.parametrize(
    ("value", "axis", "expected"),
    [("100 ms", "rtt_base_ms", 100.0), ("0.5 s", "rtt_ms", 500.0), ("10 Mbit/s", "link_mbps", 10.0),
     ("1500 kbit/s", "link_mbps", 1.5), (4, "flows", 4.0), (True, "ecn", True), ("cubic", "cc", "cubic")],
)  # fmt: skip
def test_swept_values_take_the_unit_of_their_axis(value, axis, expected):
    assert in_axis_unit(value, axis) == expected


def test_statistics_of_a_sample():
    import numpy as np

    values = Values(np.array([1.0, 2.0, 3.0, 10.0]))
    # The smallest value that half of them do not exceed.
    assert values.statistic("median") == 2.0
    assert values.statistic("mean") == 4.0
    assert values.statistic("max") == 10.0
    assert np.isnan(values.statistic("peak"))
    assert quantile_level("p99_9") == pytest.approx(0.999)
    assert quantile_level("peak") is None


@pytest.mark.parametrize("study", available(), ids=lambda study: study.name)
class TestEveryStudy:
    """What holds for the data of any study."""

    def test_its_experiment_files_are_there(self, study):
        for experiment in study.experiments:
            ways = (experiment.parts, experiment.runs_of, experiment.unavailable)
            assert sum(map(bool, ways)) == 1, experiment.id
            for part in experiment.parts:
                assert part.file.is_file(), part.file

    def test_its_claims_are_about_known_experiments(self, study):
        known = {experiment.id for experiment in study.experiments}
        assert {claim.experiment for claim in study.claims} <= known

    def test_every_claim_that_no_program_judges_has_a_reason_of_its_own(self, study):
        experiments = {experiment.id: experiment.unavailable for experiment in study.experiments}
        for case in cases(study):
            claim = case.claim
            if claim.check == "manual":
                assert case.reading.because or case.is_judged or experiments[claim.experiment], claim.id

    def test_the_verdicts_of_its_full_run_are_kept(self, study):
        kept = fullrun.read(study.folder)
        assert not kept or kept.keys() == {claim.id for claim in study.claims}

    def test_its_readings_are_of_its_claims(self, study):
        assert set(study.readings) <= {claim.id for claim in study.claims}

    def test_its_figures_show_what_it_measures(self, study):
        runnable = {experiment.id for experiment in study.experiments if not experiment.unavailable}
        for figure in study.figures:
            assert figure.metric in study.measures, figure.name
            assert figure.experiment in runnable, figure.name


def test_a_study_is_found_by_the_path_of_its_folder(tmp_path):
    (tmp_path / "study.toml").write_text('title = "T"\nsource = "S"\n', encoding="utf-8")
    assert find(str(tmp_path)).title == "T"


def judged(tmp_path: Path, claim: str, cells, *, reading=None):
    """As ``verdict``, of cells with a sample for every repeat."""
    (tmp_path / "claims.toml").write_text(CLAIM + claim, encoding="utf-8")
    experiment = Published("e", "", (), "{scheme}", {}, {}, {}, "")
    study = study_in(tmp_path, reading, experiments=(experiment,))
    found = [
        Cell(scheme, {"flows": float(flows)}, tuple(map(Single, values))) for (scheme, flows), values in cells.items()
    ]
    (judgement,) = judge(study, {"e": Grid(found, {"delay": Fake("sojourn_ms", "ms", "")})})
    return judgement


def test_a_verdict_is_on_the_mean_of_the_repeats(tmp_path):
    # Mean 4, median 1: a single long run counts.
    cells = {("a", 4): [1.0, 1.0, 10.0], ("b", 4): [3.0, 3.0, 3.0]}
    number = judged(tmp_path, "value = 4\ntol_abs = 0.5", {("a", 4): [1.0, 1.0, 10.0]})
    assert (number.verdict, number.measured) == ("reproduced", "4 ms")
    assert judged(tmp_path, 'relation = "a.delay < b.delay"', cells).verdict == "not reproduced"


NEVER = float("nan")


def test_what_never_happened_is_not_reproduced(tmp_path):
    judgement = judged(tmp_path, "value = 1\ntol_abs = 1", {("a", 4): [NEVER]})
    assert (judgement.verdict, judgement.measured) == ("not reproduced", "not seen")
    judgement = judged(tmp_path, 'relation = "a.delay < 2"', {("a", 4): [NEVER]})
    assert (judgement.verdict, judgement.measured) == ("not reproduced", "holds in 0 of 1")


def test_what_never_happened_at_one_place_stays_in_the_count(tmp_path):
    cells = {("a", 4): [1.0], ("a", 16): [NEVER]}
    judgement = judged(tmp_path, "value = 1\ntol_abs = 1\nhold_min = 0.6", cells)
    assert judgement.verdict == "not reproduced"
    assert (judgement.judged, judgement.not_seen) == (2, 1)
    assert "not seen at 1 of them" in judgement.basis
    assert judged(tmp_path, "value = 1\ntol_abs = 1\nhold_min = 0.5", cells).verdict == "reproduced"


def test_what_cannot_be_divided_stays_in_the_count(tmp_path):
    cells = {("a", 4): [1.0], ("b", 4): [0.0]}
    assert judged(tmp_path, 'relation = "a.delay / b.delay < 2"', cells).verdict == "not reproduced"


def test_places_that_were_not_run_are_counted(tmp_path):
    cells = {("a", 4): [1.0], ("b", 4): [2.0], ("a", 16): [1.0]}
    judgement = judged(tmp_path, 'relation = "a.delay < b.delay"', cells)
    assert (judgement.judged, judgement.expected) == (1, 2)
    assert "1 of 2 places run" in judgement.basis


def test_repeats_in_which_it_did_not_happen_are_counted(tmp_path):
    judgement = judged(tmp_path, "value = 1", {("a", 4): [1.0, NEVER, 1.0]})
    assert judgement.verdict == "reproduced"
    assert judgement.empty_repeats == 1
    assert "not seen in up to 1 repeats" in judgement.basis


def test_a_claim_may_be_about_some_places_only(tmp_path):
    cells = {("a", 4): [1.0], ("a", 16): [7.0], ("a", 64): [9.0]}
    reading = Reading(because="at few flows", only_where="flows < 20")
    judgement = judged(tmp_path, 'relation = "a.delay < 8"', cells, reading=reading)
    assert (judgement.measured, judgement.expected, judgement.left_out) == ("holds in 2 of 2", 2, 1)
    assert "1 places left out" in judgement.basis


def test_a_relation_at_one_place_tells_in_how_many_repeats_it_holds(tmp_path):
    cells = {("a", 4): [1.0, 5.0, 1.0], ("b", 4): [2.0, 4.0, 9.0]}
    judgement = judged(tmp_path, 'relation = "a.delay < b.delay"', cells)
    assert (judgement.verdict, judgement.repeats_held, judgement.repeats) == ("reproduced", 2, 3)
    assert "by itself in 2 of 3 repeats" in judgement.basis


@pytest.mark.parametrize(("held", "split"), [(20, False), (15, False), (14, True), (10, True), (6, True)])
def test_what_single_runs_decide_either_way_is_told_of_hits_and_misses(tmp_path, held, split):
    # The runs that hold do so by far, so that the mean does; and the reverse.
    for low, high, verdict_ in ((0.0, 5.5, "reproduced"), (100.0, 4.5, "not reproduced")):
        delays = [low] * held + [high] * (20 - held)
        found = judged(tmp_path, 'relation = "a.delay < b.delay"', {("a", 4): delays, ("b", 4): [5.0] * 20})
        assert (found.verdict, found.is_split) == (verdict_, split)
        assert ("single runs go either way" in found.basis) == split
        told = f"Single runs go either way, and the mean decides, for 1 {verdict_}: c."
        assert (told in report.summary([found])) == split


def test_repeats_are_not_counted_one_by_one_if_the_claim_is_about_more_places_than_were_run(tmp_path):
    cells = {("a", 4): [1.0, 1.0], ("b", 4): [2.0, 2.0], ("a", 16): [1.0, 1.0]}
    found = judged(tmp_path, 'relation = "a.delay < b.delay"', cells)
    assert (found.verdict, found.judged, found.expected, found.repeats) == ("reproduced", 1, 2, 0)
    assert found.basis == "1 of 2 places run"


def test_one_place_that_was_run_once_is_told(tmp_path):
    cells = {("a", 4): [1.0], ("b", 4): [2.0]}
    assert judged(tmp_path, 'relation = "a.delay < b.delay"', cells).basis == "one place, run once"


def test_a_relation_has_its_numbers(tmp_path):
    relation = 'relation = "a.delay < b.delay"'
    assert judged(tmp_path, relation, {("a", 4): [1.0], ("b", 4): [2.0]}).numbers == "1 < 2"
    everywhere = {("a", 4): [1.0], ("b", 4): [2.0], ("a", 16): [3.0], ("b", 16): [5.0]}
    assert judged(tmp_path, relation, everywhere).numbers == "1 to 3 < 2 to 5"
    assert judged(tmp_path, relation, {**everywhere, ("b", 16): [2.5]}).numbers == "flows=16: 3 > 2.5"
    rising = judged(tmp_path, 'relation = "increasing(a.delay, flows)"', {("a", 4): [3.0], ("a", 16): [1.0]})
    assert rising.numbers == "3 > 1"
    alike = judged(tmp_path, 'relation = "a.delay ~= b.delay"\ntol_rel = 0.1', {("a", 4): [1.0], ("b", 4): [2.0]})
    assert alike.numbers == "1 ≠ 2"


@pytest.mark.parametrize(
    ("claim", "delay", "told"),
    [('relation = "a.delay < 10"\ntol_margin = 0.05', 10.2, True),
     ('relation = "a.delay < 10"\ntol_margin = 0.05', 9.9, False),
     ('bound = ">"\nvalue = 10\ntol_rel = 0.2', 9.0, True),
     ('bound = ">"\nvalue = 10\ntol_rel = 0.2', 10.5, False),
     ("min = 10\nmax = 20\ntol_rel = 0.2", 22.0, True),
     ("min = 10\nmax = 20\ntol_rel = 0.2", 15.0, False),
     # "About equal" means nothing without a tolerance.
     ('relation = "a.delay ~= 10"\ntol_rel = 0.1', 10.5, False),
     # One number is never met to the last digit.
     ("value = 10\ntol_rel = 0.2", 11.0, False)],
)  # fmt: skip
def test_what_only_a_tolerance_reproduces_is_told(tmp_path, claim, delay, told):
    judgement = judged(tmp_path, claim, {("a", 4): [delay]})
    assert judgement.verdict == "reproduced"
    assert judgement.only_by_tolerance == told
    assert ("only by tolerance" in judgement.basis) == told


def test_a_claim_whose_second_number_misses_is_not_reproduced_by_a_tolerance(tmp_path):
    claim = 'min = 10\nmax = 20\ntol_rel = 0.2\nalso = [{ metric = "both", unit = "ms", value = 30 }]'
    judgement = verdict(tmp_path, claim, {("a", 4): 22.0}, derived={"both": "2 * each.delay.median"})
    assert (judgement.verdict, judgement.only_by_tolerance) == ("not reproduced", False)


def test_the_tolerance_of_a_bound_stands_beside_it(tmp_path):
    judgement = judged(tmp_path, 'bound = ">"\nvalue = 10\ntol_rel = 0.2', {("a", 4): [9.0]})
    assert (judgement.published, judgement.tolerance) == ("> 10 ms", "± 20%")


def test_a_miss_without_a_cause_is_unexplained(tmp_path):
    cells = {("a", 4): [3.0]}
    assert judged(tmp_path, 'relation = "a.delay < 2"', cells).cause == "unexplained"
    judgement = judged(tmp_path, 'relation = "a.delay < 2"', cells, reading=Reading(because="", cause="model"))
    assert judgement.cause == "model"
    judgement = judged(tmp_path, 'relation = "a.delay < 4"', cells, reading=Reading(because="", cause="model"))
    assert judgement.cause == ""


def value(formula: str, grid: Grid) -> float:
    (one,) = instances(formula, grid)
    return one.value


def test_a_pooled_percentile_is_of_the_values_of_all_repeats(tmp_path):
    import numpy as np

    # 20 values of 0 to 19 and 80 of 100: p10 of all is the tenth, 9; the mean of the two runs' own, 1 and 100, is 50.5.
    runs = (Values(np.arange(20.0)), Values(np.full(80, 100.0)))
    cells = [Cell("a", {"flows": 4.0}, runs)]
    pooled = Grid(cells, {"delay": Fake("download_ms", "ms", "", pooled=True)})
    each = Grid(cells, {"delay": Fake("download_ms", "ms", "")})
    assert value("a.delay.p10", pooled) == 9.0
    assert value("a.delay.p10", each) == 50.5
    assert value("a.delay.max", pooled.of(slice(1))) == 19.0
