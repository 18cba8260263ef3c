"""The page of RFC 7928's results, docs/results/rfc7928: made of a folder that ``sojourn evaluate`` has written.

``python validation/rfc7928_page.py DIR --took "..."``
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

import duckdb

PAGE = Path(__file__).parents[1] / "docs" / "results" / "rfc7928"
SHOWN = (
    ("5.1.1", "TCP-friendly sender"),
    ("5.2", "aggressive sender: CUBIC"),
    ("5.3", "unresponsive sender"),
    ("6.2", "RTT fairness: RTT 15 ms and 100 ms"),
    ("7.2", "burst absorption: IV, with bulk and video"),
    ("8.2.4", "heavy congestion"),
    ("8.2.5", "varying congestion"),
    ("8.2.6", "varying capacity, every 20 s"),
    ("9.1", "traffic mix"),
)
"""The scenarios of the table on the page; all are in summary.csv."""
MAP = "overview.png"
FIGURES = {"tradeoff-5.png": "Transport protocols, section 5", "tradeoff-8.png": "Stability, section 8"}
READ = "read_csv('data.csv', quote='\"')"
SUMMARY = f"""select section, scenario, weight, queue, metric, unit, count(value) as seeds,
  round(avg(value), 6) as mean, round(min(value), 6) as least, round(max(value), 6) as most
from {READ}
where metric in ('goodput_mbps', 'delay_mean_ms', 'delay_p95_ms', 'loss_percent', 'jain')
group by all order by all"""


def main() -> None:
    """Writes the page, its table and its figures."""
    parser = argparse.ArgumentParser(description="Make docs/results/rfc7928 of an evaluation.")
    parser.add_argument("directory", type=Path, help="the folder that sojourn evaluate --out has written")
    parser.add_argument("--took", required=True, help="time and machine of the evaluation, for the page")
    given = parser.parse_args()
    PAGE.mkdir(parents=True, exist_ok=True)
    with duckdb.connect() as database:
        data = given.directory / "data.csv"
        table = database.sql(SUMMARY.replace("data.csv", str(data)))
        table.write_csv(str(PAGE / "summary.csv"))
        means = {
            (section, scenario, queue, metric): mean
            for section, scenario, _, queue, metric, _, _, mean, *_ in table.fetchall()
        }
        names = f"select queue, any_value(role) from {READ} group by queue order by queue"
        roles: dict[str, str] = dict(database.sql(names.replace("data.csv", str(data))).fetchall())
        seeds = f"select count(distinct seed) from {READ}"
        [(counted,)] = database.sql(seeds.replace("data.csv", str(data))).fetchall()
    for figure in (MAP, *FIGURES):
        shutil.copy(given.directory / figure, PAGE / figure)
    (PAGE / "README.md").write_text(_page(means, roles, counted, given.took))


def _page(means: dict[tuple[str, str, str, str], float], roles: dict[str, str], seeds: int, took: str) -> str:
    tested = next(queue for queue, role in roles.items() if role == "under test")
    against = ",".join(queue for queue in roles if queue not in (tested, "pfifo"))
    rows = [
        [queue]
        + [
            f"{means[section, scenario, queue, 'delay_mean_ms']:.3g} / "
            f"{means[section, scenario, queue, 'goodput_mbps']:.3g}"
            for section, scenario in SHOWN
        ]
        for queue in roles
    ]
    head = ["discipline", *(f"{section} {name}" for section, name in SHOWN)]
    lines = [
        f"# RFC 7928: {len(roles)} disciplines",
        "",
        "[What is run and how to read it](../../evaluate.md). Every discipline has its defaults. Each scenario runs",
        f"with {seeds} seeds. {took} The command:",
        "",
        f"    sojourn evaluate {tested} --against {against} --out rfc",
        "",
        "## Every discipline in every scenario",
        "",
        "Medians over the seeds, as ratios to those of pfifo in the same scenario: blue is better. Disciplines are",
        "sorted by families. Grey: not applicable, or a scenario of drop-tail alone. A click opens the picture in full",
        "size.",
        "",
        f"[![Delay and goodput of every discipline in every scenario, against drop-tail]({MAP})]({MAP})",
        "",
        "Some scenarios in numbers: mean queueing delay in ms / goodput in Mbit/s, means over the seeds:",
        "",
        *("| " + " | ".join(row) + " |" for row in (head, ["---"] * len(head), *rows)),
        "",
        "[summary.csv](summary.csv) has the mean, the least and the largest value over the seeds of five metrics in",
        "every scenario. It is made of the command's `data.csv`, whose columns `datapackage.json` describes:",
        "",
        "```sql",
        SUMMARY,
        "```",
        "",
        "## Goodput against queueing delay",
        "",
        "As in section 2.7 of the RFC: a dot per run, a mark at the medians, and as contour the standard deviation of",
        "the fitted normal distribution. Better is up and to the right. A colour is a family; marks that are too close",
        "to others have no name.",
        "",
        *(f"![{title}]({figure})\n" for figure, title in FIGURES.items()),
    ]
    return "\n".join(lines).rstrip() + "\n"


if __name__ == "__main__":
    main()
