// Results as cells: the runs of one queue with one set of swept values, and the figures of the registry of metrics.

/** The number at a dotted path; none if it is not there. */
const at = (element, path) => path.split(".").reduce((found, key) => found?.[key], element);

/** A metric of an element of a result; null if it has none. */
function valueOf(metric, element) {
  if (element === undefined || (metric.not_of && element.kind === metric.not_of)) return null;
  let sum = 0;
  for (const path of metric.at) {
    const value = at(element, path);
    if (typeof value !== "number") return null;
    sum += value;
  }
  return metric.zero_is_none && sum === 0 ? null : sum;
}

/** The queues of a run by place: `down` and `up`; with several links `home/down` and so on. */
export function queuesOf(run) {
  const links = Object.entries(run.links);
  if (links.length < 2) return run.bottleneck;
  const ways = ["down", "up"];
  return Object.fromEntries(
    links.flatMap(([name, link]) => ways.filter((way) => way in link).map((way) => [`${name}/${way}`, link[way]])),
  );
}

function stationsOf(run) {
  const links = Object.entries(run.links);
  return Object.fromEntries(
    links.flatMap(([name, link]) =>
      Object.entries(link.stations ?? {}).map(([station, figures]) => [
        links.length < 2 ? station : `${name}/${station}`,
        figures,
      ]),
    ),
  );
}

const merged = (runs, keysOf) => [...new Set(runs.flatMap(keysOf))];

/** Every column that some run has a number for: `{ metric, whose, read }`. */
export function columns(metrics, runs) {
  const over = (name) => metrics.filter((metric) => metric.over === name);
  const found = [];
  const add = (metric, whose, read) => found.push({ metric, whose, read: (run) => read(run) });
  for (const place of merged(runs, (run) => Object.keys(queuesOf(run)))) {
    for (const metric of metrics) {
      if (metric.over === "queue") add(metric, place, (run) => valueOf(metric, queuesOf(run)[place]));
      if (metric.over === "direction" && ["down", "up"].includes(place)) {
        add(metric, place, (run) => {
          const flows = run.flows.filter((flow) => flow.direction === place);
          return flows.length ? flows.reduce((sum, flow) => sum + (valueOf(metric, flow) ?? 0), 0) : null;
        });
      }
    }
    const inner = merged(runs, (run) => Object.keys(queuesOf(run)[place]?.queues ?? {}));
    for (const name of inner) {
      for (const metric of over("inner_queue")) {
        add(metric, `${place} ${name}`, (run) => valueOf(metric, queuesOf(run)[place]?.queues?.[name]));
      }
    }
  }
  for (const metric of over("run")) add(metric, "", (run) => valueOf(metric, run));
  const titles = merged(runs, (run) => run.groups.map((group) => titleOf(group, run)));
  for (const title of titles) {
    for (const metric of over("group")) {
      add(metric, title, (run) => valueOf(metric, run.groups.find((group) => titleOf(group, run) === title)));
    }
  }
  for (const name of merged(runs, (run) => Object.keys(stationsOf(run)))) {
    for (const metric of over("station")) add(metric, name, (run) => valueOf(metric, stationsOf(run)[name]));
  }
  return found.filter(({ read }) => runs.some((run) => read(run) !== null));
}

/** A group's name, with its direction if the group has both. */
function titleOf(group, run) {
  const isBoth = run.groups.some((other) => other.traffic === group.traffic && other.direction !== group.direction);
  return isBoth ? `${group.name} ${group.direction}` : group.name;
}

/** The columns that answer the first question: delay and goodput of the queues, and what users perceive. */
export function atAGlance(all, runs) {
  const isOneLink = runs.every((run) => Object.keys(run.links).length < 2);
  const first = (column) =>
    column.metric.over === "queue"
      ? column.metric.name === "sojourn_p95_ms"
      : column.metric.over === "direction"
        ? column.metric.name === "goodput_bps"
        : column.metric.over === "group" &&
          (column.metric.of_application
            ? !column.metric.name.endsWith("_p95_ms")
            : !isOneLink && column.metric.name === "goodput_bps");
  return all.filter(first);
}

/** Runs by queue and swept values, in the order of results. */
export function cells(runs) {
  const found = new Map();
  for (const run of runs) {
    const key = JSON.stringify([run.set, run.label]);
    if (!found.has(key)) found.set(key, { label: run.label, set: run.set, runs: [] });
    found.get(key).runs.push(run);
  }
  return [...found.values()];
}

/** Median, least and greatest of a column over the runs of a cell, in the unit that people see; null if there is none. */
export function spread(column, cell) {
  const values = cell.runs.map(column.read).filter((value) => value !== null);
  if (!values.length) return null;
  const sorted = values.map((value) => value / column.metric.per).sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  const median = sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
  return { median, low: sorted[0], high: sorted.at(-1), values: sorted };
}

/** A number with the decimals of its metric; three digits where more say nothing. */
export function told(value, metric) {
  if (!Number.isFinite(value)) return "–";
  const size = Math.abs(Number(value.toPrecision(3)));
  if (metric.digits === 0 || size >= 100) return String(Math.round(value));
  return value.toFixed(size >= 10 ? Math.min(1, metric.digits) : metric.digits);
}
