"""The page of RFC 7928's results, docs/results/rfc7928: made of a folder that ``sojourn evaluate`` has written.

``python validation/rfc7928_page.py DIR --took "..."``
"""

from __future__ import annotations

import argparse
import re
import shutil
from pathlib import Path

import duckdb
import pages

PAGE = pages.RESULTS / "rfc7928"
README = PAGE / "README.md"
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
FIGURES = ("tradeoff-5.png", "tradeoff-8.png")
READ = "read_csv('data.csv', quote='\"')"
[SUMMARY] = re.findall(r"```sql\n(.*?)\n```", README.read_text(encoding="utf-8"), re.DOTALL)
"""What the page says of summary.csv is what makes it."""


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
    _write(means, roles, counted, given.took)


def _write(means: dict[tuple[str, str, str, str], float], roles: dict[str, str], seeds: int, took: str) -> None:
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
    words = {
        r"^# RFC 7928: (\d+) disciplines": len(roles),
        r"^with (\d+) seeds\.": seeds,
        r"seeds\. (.*) The command:": took,
        r"sojourn evaluate (\S+) --against": tested,
        r"--against (\S+) --out rfc": against,
    }
    pages.put(README, [("| discipline", rows)], words)


if __name__ == "__main__":
    main()
