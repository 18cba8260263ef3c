// The results of a file: tables and marks from the same cells.

import { atAGlance, cells, columns, spread, told } from "./cells.js";
import { colour } from "./colours.js";
import { distribution, lines, points } from "./marks.js";

const byId = (id) => document.getElementById(id);
/** Cells of more than this many are told in the table only. */
const MOST_ROWS = 40;

/** A quantile's head alone would not say of what. */
const heading = ({ metric, whose }) => [
  whose,
  metric.over === "queue" && /^(p\d|mean)/.test(metric.head) ? `delay ${metric.head}` : metric.head,
  metric.unit,
];
const named = ({ metric, whose }) =>
  `${whose ? `${whose}: ` : ""}${metric.words}${metric.unit ? ` [${metric.unit}]` : ""}`;

/** A cell's name: its queue, and the swept values. */
const nameOf = (cell) => [cell.label, ...Object.values(cell.set).map(String)].join(", ");

export class ResultsView {
  /** Shows results; `plan` is what the reading of the file gave. */
  show(results, plan, about) {
    this.shown = { results, plan, about };
    const runs = results.map((result) => result.summary);
    const found = cells(runs);
    const all = columns(about.metrics, runs);
    const glance = atAGlance(all, runs);
    const labels = plan.arms.map((arm) => arm.label);
    this.colourOf = (cell) => labels.indexOf(cell.label);
    byId("empty").hidden = true;
    byId("outcome").hidden = false;
    this.table(byId("glance"), glance, found);
    this.table(byId("everything"), all, found);
    const seeds = new Set(runs.map((run) => run.seed)).size;
    byId("counted").textContent =
      seeds > 1 ? `Medians of ${seeds} runs, below them the range of the runs.` : "One run each.";
    this.figures(glance, found, results, plan);
    byId("csv").onclick = () => save(`${fileName(plan.name)}.csv`, csv(all, found), "text/csv");
    byId("json").onclick = () => save(`${fileName(plan.name)}.json`, JSON.stringify(runs, null, 1), "application/json");
  }

  restyle() {
    if (this.shown) this.show(this.shown.results, this.shown.plan, this.shown.about);
  }

  table(place, wanted, found) {
    const keys = Object.keys(found[0].set);
    const head = document.createElement("thead");
    const rows = [0, 1, 2].map(() => head.insertRow());
    for (const [index, name] of ["queue", ...keys].entries()) {
      const cell = document.createElement("th");
      cell.rowSpan = 3;
      cell.scope = "col";
      cell.textContent = index ? name.split(".").slice(-2).join(".") : name;
      rows[0].append(cell);
    }
    for (const column of wanted) {
      heading(column).forEach((text, row) => {
        const cell = document.createElement("th");
        cell.textContent = text;
        if (row === 1) cell.title = column.metric.words;
        const last = rows[row].lastElementChild;
        // Columns of one owner share its name.
        if (row === 0 && last?.dataset.whose === text) last.colSpan += 1;
        else {
          if (row === 0) cell.dataset.whose = text;
          rows[row].append(cell);
        }
      });
    }
    const body = document.createElement("tbody");
    for (const cell of found) {
      const row = body.insertRow();
      const name = document.createElement("th");
      name.scope = "row";
      const dot = document.createElement("i");
      dot.style.background = colour(this.colourOf(cell));
      name.append(dot, cell.label);
      row.append(name);
      for (const key of keys) row.insertCell().textContent = String(cell.set[key]);
      for (const column of wanted) {
        const at = row.insertCell();
        const found = spread(column, cell);
        at.textContent = found ? told(found.median, column.metric) : "–";
        if (found && found.values.length > 1) {
          const range = document.createElement("small");
          range.textContent = `${told(found.low, column.metric)}–${told(found.high, column.metric)}`;
          at.append(range);
        }
      }
    }
    place.replaceChildren(head, body);
  }

  figures(glance, found, results, { arms, numbers }) {
    const place = byId("figures");
    place.replaceChildren();
    const swept = Object.keys(found[0].set);
    const xOf = ({ set }) => numbers[set[swept[0]]] ?? set[swept[0]];
    const isLine = swept.length === 1 && new Set(found.map(xOf)).size > 2 && found.every((cell) => Number.isFinite(xOf(cell)));
    for (const column of glance) {
      if (isLine) {
        const series = arms.map(({ label }, number) => ({
          colour: number,
          points: found
            .filter((cell) => cell.label === label)
            .map((cell) => ({ x: xOf(cell), told: String(cell.set[swept[0]]), spread: spread(column, cell) }))
            .filter((point) => point.spread),
        }));
        place.append(lines(named(column), swept[0], series));
      } else {
        const rows = found.slice(0, MOST_ROWS).map((cell) => ({
          name: nameOf(cell),
          colour: this.colourOf(cell),
          spread: spread(column, cell),
        }));
        place.append(points(named(column), rows, column.metric.scale));
      }
    }
    const spreads = swept.length ? [] : [distribution("Share of packets up to a sojourn time", this.distributions(found, results))];
    // Beside the table, if that leaves room.
    const isNarrow = glance.length + swept.length <= 4;
    byId("spreads").replaceChildren(...(isNarrow ? spreads : []));
    if (!isNarrow) place.prepend(...spreads);
  }

  /** Sojourn times at the first queue, the runs of a cell together. */
  distributions(found, results) {
    return found.map((cell) => {
      const counts = new Map();
      for (const result of results) {
        const table = result.tables.histogram;
        if (!table || result.summary.label !== cell.label) continue;
        table.sojourn_ms.forEach((delay, row) => {
          if (table.link[row] !== table.link[0] || table.direction[row] !== table.direction[0]) return;
          counts.set(delay, (counts.get(delay) ?? 0) + table.packets[row]);
        });
      }
      const sorted = [...counts].sort((a, b) => a[0] - b[0]);
      const total = sorted.reduce((sum, [, packets]) => sum + packets, 0);
      let below = 0;
      return {
        colour: this.colourOf(cell),
        delays: sorted.map(([delay]) => delay),
        shares: sorted.map(([, packets]) => (below += packets) / total),
      };
    });
  }
}

/** A row per run, as other tools read it: no text is one that a spreadsheet would calculate. */
export function csv(all, found) {
  const quoted = (text) => (/[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  const field = (value) => {
    if (typeof value === "number") return Number.isNaN(value) ? "" : String(value);
    return quoted(String(value ?? "").replace(/^[=+\-@\t\r]/, "'$&"));
  };
  const keys = Object.keys(found[0].set);
  const names = all.map(({ metric, whose }) => (whose ? `${whose.replaceAll(" ", ".")}.${metric.name}` : metric.name));
  const rows = found.flatMap((cell) =>
    cell.runs.map((run) => [run.label, run.seed, ...keys.map((key) => run.set[key]), ...all.map(({ read }) => read(run))]),
  );
  return [["label", "seed", ...keys, ...names], ...rows].map((row) => row.map(field).join(",")).join("\n") + "\n";
}

export const fileName = (name) => name.replace(/[^\w.-]+/g, "-").replace(/^-|-$/g, "").slice(0, 60) || "experiment";

/** Hands a text over as a file. */
export function save(name, text, type) {
  const link = Object.assign(document.createElement("a"), {
    href: URL.createObjectURL(new Blob([text], { type })),
    download: name,
  });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
