"""What the GitHub action writes into its comment: ``action.py FOLDER METRIC THRESHOLD TABLE``.

Writes Markdown to standard output. Ends with status 1 if the whole interval of a difference is beyond the threshold,
and with 2 if there is nothing to compare.
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path


def comment(folder: Path, metric: str, threshold: float, table: str) -> tuple[str, int]:
    """The comment and the exit status."""
    with (folder / "differences.csv").open(newline="", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["metric"] == metric and row["difference"]]
    if not rows:
        return (
            f"No differences of `{metric}`: one of the names in differences.csv is needed, and more than one queue.",
            2,
        )
    lines = [f"**{metric}** against {rows[0]['baseline']}, at most {threshold:+g}:", ""]
    lines += ["| queue | direction | difference | 95 % interval | |", "| --- | --- | --- | --- | --- |"]
    status = 0
    for row in rows:
        low, high = (float(row[key] or row["difference"]) for key in ("low", "high"))
        is_worse = high < threshold if threshold < 0 else low > threshold
        status |= is_worse
        where = " ".join(filter(None, (row["link"], row["direction"])))
        verdict = "**worse**" if is_worse else "ok"
        difference = f"{float(row['difference']):+.4g} | {low:+.4g} to {high:+.4g}"
        lines.append(f"| {row['label']} | {where} | {difference} | {verdict} |")
    return "\n".join(
        [*lines, "", "<details><summary>All figures</summary>", "", "```text", table.rstrip(), "```", "", "</details>"]
    ), status


if __name__ == "__main__":
    folder, metric, threshold, table = sys.argv[1:]
    text, status = comment(Path(folder), metric, float(threshold), Path(table).read_text(encoding="utf-8"))
    print(text)
    sys.exit(status)
