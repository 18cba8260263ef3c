"use strict";

/* State: what is drawn, over which keys, and which values of each key are chosen. */
const MOST_PANELS = 12, MOST_BOXES = 40, MOST_ROWS = 300;
const KINDS = { heatmap: "Heat map", lines: "Lines", pareto: "Pareto front" };
const state = { kind: "heatmap", x: "", y: "", each: "label", metric: "", cost: "", gain: "", chosen: {}, sort: null };
let data, keys, metrics;

const byId = (id) => document.getElementById(id);

function element(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

async function unpacked(id) {
  const bytes = Uint8Array.from(atob(byId(id).textContent), (letter) => letter.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
}

/* Numbers as people read them: three significant digits. */
function short(value) {
  if (value === null || value === undefined) return "–";
  if (value === 0) return "0";
  const size = Math.floor(Math.log10(Math.abs(value)));
  if (size < -3 || size > 8) return value.toExponential(2);
  return String(Number(value.toFixed(Math.max(0, 2 - size))));
}

const unitOf = (metric) => (metric.unit ? ` ${metric.unit}` : "");
const axisOf = (metric) => (metric.unit ? `${metric.words} [${metric.unit}]` : metric.words);
const runsOf = (metric, cell) => (Array.isArray(metric.n) ? metric.n[cell] : metric.n);

/* "12.3 ms [11.9–12.8]" */
function figure(metric, cell) {
  const middle = metric.middle[cell];
  if (middle === null) return "no value";
  const interval = metric.low && runsOf(metric, cell) > 1 ? ` [${short(metric.low[cell])}–${short(metric.high[cell])}]` : "";
  return `${short(middle)}${unitOf(metric)}${interval}`;
}

/* The least and the largest value; a spread argument list would be too long for many. */
function ends(values) {
  return values.reduce(([low, high], value) => (value === null ? [low, high] : [Math.min(low, value), Math.max(high, value)]), [Infinity, -Infinity]);
}

function wantsLog(values) {
  const [low, high] = ends(values);
  return low > 0 && high / low > data.log_from;
}

const phrase = (key, index) => {
  const text = key.texts[index];
  if (key.key === "label") return text;
  if (key.words === "flows") return `${text} flow${text === "1" ? "" : "s"}`;
  return `${key.words} ${text}`;
};
const setting = (cell, some = keys) => some.map((key) => phrase(key, key.indices[cell])).join(", ");
const html = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");

/* Which values count. A key that nobody touched has all its values, unless that would give too many panels. */
function axesInUse() {
  if (state.kind !== "pareto") return [state.x, upName()];
  return keys.filter((key) => key.key === "label" || key.key.startsWith("queue.")).map((key) => key.key);
}

const upName = () => (state.kind === "lines" ? state.each : state.y);

function outer() {
  const within = axesInUse();
  return keys.filter((key) => !within.includes(key.key) && key.texts.length > 1);
}

function chosen() {
  const found = {};
  for (const key of keys) found[key.key] = state.chosen[key.key] ?? new Set(key.texts.keys());
  const panels = () => outer().reduce((product, key) => product * found[key.key].size, 1);
  const untouched = outer().filter((key) => !state.chosen[key.key]).sort((a, b) => b.texts.length - a.texts.length);
  for (const key of untouched.sort((a, b) => (a.key === "label") - (b.key === "label"))) {
    if (panels() > MOST_PANELS) found[key.key] = new Set([Math.floor((key.texts.length - 1) / 2)]);
  }
  return found;
}

function cellsOf(sets) {
  const found = [];
  for (let cell = 0; cell < keys[0].indices.length; cell++) {
    if (keys.every((key) => sets[key.key].has(key.indices[cell]))) found.push(cell);
  }
  return found;
}

/* Controls. */
function select(name, label, options, wide) {
  const list = element("select", { name });
  for (const [value, text] of options) list.append(element("option", { value, textContent: text, selected: state[name] === value }));
  list.addEventListener("change", () => { state[name] = list.value; draw(); });
  return element("label", { className: wide ? "wide-one" : "" }, element("span", { className: "name", textContent: label }), list);
}

function controls(sets) {
  const kinds = byId("kinds");
  if (kinds.children.length === 1) {
    for (const [kind, words] of Object.entries(KINDS)) {
      const button = element("input", { type: "radio", name: "kind", value: kind, checked: kind === state.kind });
      button.addEventListener("change", () => { state.kind = kind; draw(); });
      kinds.append(element("label", {}, button, words));
    }
  }
  const ofKeys = keys.filter((key) => key.texts.length > 1 || keys.length < 3).map((key) => [key.key, key.label]);
  const ofMetrics = metrics.map((metric) => [metric.name, axisOf(metric)]);
  byId("axes").replaceChildren(...(state.kind === "pareto"
    ? [select("cost", "less is better", ofMetrics), select("gain", "more is better", ofMetrics)]
    : [select("metric", "metric", ofMetrics, true), select("x", "x axis", ofKeys),
       state.kind === "lines" ? select("each", "a line per", ofKeys) : select("y", "y axis", ofKeys)]));
  const open = new Set([...byId("filters").querySelectorAll("details[open]")].map((part) => part.dataset.key));
  byId("filters").replaceChildren(...keys.filter((key) => key.texts.length > 1).map((key) => filter(key, sets[key.key], open.has(key.key))));
}

function filter(key, set, open) {
  const count = set.size === key.texts.length ? "all" : set.size === 1 ? key.texts[[...set][0]] : `${set.size} of ${key.texts.length}`;
  const part = element("details", { open }, element("summary", {}, `${key.words} `, element("small", { textContent: count })));
  part.dataset.key = key.key;
  const choose = (indices) => { state.chosen[key.key] = new Set(indices); draw(); };
  if (key.texts.length > MOST_BOXES && key.numbers) {
    const known = [...set].map((index) => key.numbers[index]);
    const [from, to] = ends(known).map((value) => element("input", { type: "number", step: "any", value }));
    for (const end of [from, to]) {
      end.addEventListener("change", () => choose([...key.numbers.keys()].filter(
        (index) => key.numbers[index] >= Number(from.value) && key.numbers[index] <= Number(to.value))));
    }
    part.append(element("div", { className: "range" }, from, "to", to));
    return part;
  }
  const all = element("button", { type: "button", className: "all", textContent: "all" });
  all.addEventListener("click", () => choose(key.texts.keys()));
  const none = element("button", { type: "button", className: "all", textContent: "none" });
  none.addEventListener("click", () => choose([]));
  const list = element("div", { className: "values" }, all, none);
  key.texts.forEach((text, index) => {
    const box = element("input", { type: "checkbox", checked: set.has(index) });
    box.addEventListener("change", () => choose(box.checked ? [...set, index] : [...set].filter((one) => one !== index)));
    list.append(element("label", {}, box, text));
  });
  part.append(list);
  return part;
}

/* Pictures. */
const FONT = { family: "inherit", size: 12, color: "#1d2329" };
const GRID = { gridcolor: "#e6e9ec", zeroline: false, automargin: true };
const CONFIG = { responsive: true, displaylogo: false, displayModeBar: false };

function ticks(values) {
  const [low, high] = ends(values).map((value, at) => (at ? Math.ceil : Math.floor)(Math.log10(value)));
  const subs = high - low > 3 ? [1] : [1, 2, 5];
  const found = [];
  for (let power = low; power <= high; power++) for (const sub of subs) found.push(sub * 10 ** power);
  return found;
}

function keyAxis(key, set) {
  const indices = [...set].sort((a, b) => a - b);
  const numbers = key.numbers && indices.map((index) => key.numbers[index]);
  const isLog = Boolean(numbers) && wantsLog(numbers);
  return {
    at: (index) => (numbers ? key.numbers[index] : key.texts[index]),
    layout: {
      ...GRID, title: { text: html(key.label) },
      ...(numbers ? (isLog ? { type: "log", tickvals: ticks(numbers), ticktext: ticks(numbers).map(short) } : { type: "linear" })
        : { type: "category", categoryorder: "array", categoryarray: indices.map((index) => key.texts[index]) }),
    },
  };
}

/* The range that all panels share. */
function common(values, isLog, fromZero) {
  const known = values.filter((value) => value !== null && (!isLog || value > 0)).map((value) => (isLog ? Math.log10(value) : value));
  const [low, high] = ends(known);
  if (!known.length) return [0, 1];
  const room = 0.06 * (high - low) || 0.05 * Math.abs(high) || 1;
  return [fromZero && !isLog && low >= 0 ? 0 : low - room, high + room];
}

function heatmap(cells, sets) {
  const across = keyOf(state.x), up = keyOf(state.y), metric = metricOf(state.metric);
  const order = (key) => [...sets[key.key]].sort((a, b) => a - b);
  const columns = order(across), rows = order(up);
  const known = cells.map((cell) => metric.middle[cell]).filter((value) => value !== null);
  const isLog = wantsLog(known);
  const shown = (value) => (value === null ? null : isLog ? Math.log10(value) : value);
  const range = known.length ? ends(known).map(shown) : [0, 1];
  const few = columns.length * rows.length <= 80;
  return (members) => {
    const z = rows.map(() => columns.map(() => null)), text = z.map((row) => row.map(() => "")), hover = z.map((row) => row.map(() => "no runs"));
    for (const cell of members) {
      const row = rows.indexOf(up.indices[cell]), column = columns.indexOf(across.indices[cell]);
      z[row][column] = shown(metric.middle[cell]);
      text[row][column] = few ? short(metric.middle[cell]) : "";
      hover[row][column] = `${html(setting(cell))}<br>${html(figure(metric, cell))}, ${runsOf(metric, cell)} runs`;
    }
    const names = (key, indices) => indices.map((index) => (key.numbers ? short(key.numbers[index]) : key.texts[index]));
    const bar = isLog ? { tickvals: ticks(known).map(Math.log10), ticktext: ticks(known).map(short) } : {};
    const axis = (key, indices) => ({
      ...GRID, title: { text: html(key.label) }, type: "linear", showgrid: false, range: [-0.5, indices.length - 0.5],
      tickvals: [...indices.keys()].filter((index) => index % Math.ceil(indices.length / 14) === 0),
      ticktext: names(key, indices).filter((_, index) => index % Math.ceil(indices.length / 14) === 0).map((name) => html(name.length > 18 ? `${name.slice(0, 17)}…` : name)),
    });
    return {
      traces: [{
        type: "heatmap", z, text, hovertext: hover, hoverinfo: "text", texttemplate: few ? "%{text}" : "", colorscale: "Viridis",
        zmin: range[0], zmax: range[1], xgap: 1, ygap: 1, hoverongaps: true, colorbar: { thickness: 10, outlinewidth: 0, ...bar },
      }],
      layout: { plot_bgcolor: "#e9ebed", xaxis: axis(across, columns), yaxis: axis(up, rows) },
    };
  };
}

function lines(cells, sets) {
  const across = keyOf(state.x), each = keyOf(state.each), metric = metricOf(state.metric);
  const x = keyAxis(across, sets[across.key]);
  const known = cells.map((cell) => metric.middle[cell]).filter((value) => value !== null);
  const isLog = wantsLog(known);
  const range = common(cells.flatMap((cell) => [metric.middle, metric.low, metric.high].map((list) => list?.[cell] ?? null)), isLog, true);
  return (members) => {
    const traces = [...sets[each.key]].sort((a, b) => a - b).map((index) => {
      const line = members.filter((cell) => each.indices[cell] === index).sort((a, b) => across.indices[a] - across.indices[b]);
      const look = each.key === "label" ? data.looks[index] : data.palette[index % data.palette.length];
      const bars = metric.low && {
        type: "data", symmetric: false, thickness: 1, width: 3,
        array: line.map((cell) => metric.high[cell] - metric.middle[cell]),
        arrayminus: line.map((cell) => metric.middle[cell] - metric.low[cell]),
      };
      return {
        type: "scatter", mode: "lines+markers", name: html(each.texts[index]), x: line.map((cell) => x.at(across.indices[cell])),
        y: line.map((cell) => metric.middle[cell]), error_y: bars, marker: { color: look.color, symbol: look.symbol, size: 7 },
        line: { color: look.color, dash: look.dash, width: 2 }, hoverinfo: "text",
        hovertext: line.map((cell) => `${html(setting(cell))}<br>${html(figure(metric, cell))}, ${runsOf(metric, cell)} runs`),
      };
    });
    const y = { ...GRID, title: { text: html(axisOf(metric)) }, type: isLog ? "log" : "linear", range };
    if (isLog) Object.assign(y, { tickvals: ticks(known), ticktext: ticks(known).map(short) });
    return { traces: traces.filter((trace) => trace.x.length), layout: { xaxis: x.layout, yaxis: y } };
  };
}

/* The cells that no other one dominates: no more cost, no less gain, and better in one of them. */
function front(members, cost, gain) {
  const known = members.filter((cell) => cost.middle[cell] !== null && gain.middle[cell] !== null);
  known.sort((a, b) => cost.middle[a] - cost.middle[b] || gain.middle[b] - gain.middle[a]);
  const found = [];
  for (const cell of known) {
    const best = found[found.length - 1];
    if (best === undefined || gain.middle[cell] > gain.middle[best]
      || (gain.middle[cell] === gain.middle[best] && cost.middle[cell] === cost.middle[best])) found.push(cell);
  }
  return found;
}

function pareto(cells, sets) {
  const cost = metricOf(state.cost), gain = metricOf(state.gain), label = keyOf("label");
  const known = cells.map((cell) => cost.middle[cell]).filter((value) => value !== null);
  const isLog = wantsLog(known);
  const range = common(known, isLog, false).reverse();
  return (members) => {
    const best = front(members, cost, gain), onFront = new Set(best);
    const hover = (cell) => `${html(setting(cell))}<br>${html(cost.words)}: ${html(figure(cost, cell))}<br>${html(gain.words)}: ${html(figure(gain, cell))}`
      + (onFront.has(cell) ? "<br>on the front" : "");
    // Below a mark of another queue at the same point a larger one is seen around it.
    const at = (cell) => `${cost.middle[cell]} ${gain.middle[cell]}`, above = new Map();
    const traces = [{
      type: "scatter", mode: "lines", line: { shape: "hv", color: "#5d6872", width: 1.5 }, hoverinfo: "skip", showlegend: false,
      x: best.map((cell) => cost.middle[cell]), y: best.map((cell) => gain.middle[cell]),
    }];
    const marks = [];
    for (const index of [...sets.label].sort((a, b) => b - a)) {
      const some = members.filter((cell) => label.indices[cell] === index), look = data.looks[index];
      const rings = some.map((cell) => above.get(at(cell)) ?? 0);
      for (const place of new Set(some.map(at))) above.set(place, (above.get(place) ?? 0) + 1);
      marks.unshift({
        type: members.length > 3000 ? "scattergl" : "scatter", mode: "markers", name: html(label.texts[index]), hoverinfo: "text", hovertext: some.map(hover),
        x: some.map((cell) => cost.middle[cell]), y: some.map((cell) => gain.middle[cell]),
        marker: {
          color: look.color, symbol: look.symbol, size: some.map((cell, one) => (onFront.has(cell) ? 11 : 7) + 8 * rings[one]),
          opacity: some.map((cell) => (onFront.has(cell) ? 1 : 0.45)), line: { width: some.map((cell) => (onFront.has(cell) ? 1.5 : 0)), color: "#1d2329" },
        },
      });
    }
    traces.push(...marks);
    const x = { ...GRID, title: { text: `${html(axisOf(cost))}, less to the right` }, type: isLog ? "log" : "linear", range };
    if (isLog) Object.assign(x, { tickvals: ticks(known), ticktext: ticks(known).map(short) });
    return { traces: traces.filter((trace) => trace.x.length), layout: { xaxis: x, yaxis: { ...GRID, title: { text: html(axisOf(gain)) } } } };
  };
}

const keyOf = (name) => keys.find((key) => key.key === name);
const metricOf = (name) => metrics.find((metric) => metric.name === name);

function say(text, warning = false) {
  byId("note").textContent = text;
  byId("note").className = warning ? "warning" : "";
}

function draw() {
  const sets = chosen(), cells = cellsOf(sets), parts = outer();
  controls(sets);
  const panels = new Map();
  for (const cell of cells) {
    const name = parts.map((key) => key.indices[cell]).join();
    if (!panels.has(name)) panels.set(name, []);
    panels.get(name).push(cell);
  }
  for (const drawn of document.querySelectorAll(".drawn")) Plotly.purge(drawn);
  byId("panels").replaceChildren();
  table(cells);
  if (state.kind !== "pareto" && state.x === upName()) return say("Choose two different keys.", true);
  if (!cells.length) return say("No cell has these values.", true);
  if (panels.size > MOST_PANELS) return say(`These values would need ${panels.size} panels, at most ${MOST_PANELS} are drawn: choose fewer values of ${parts.map((key) => key.words).join(", ")}.`, true);
  const single = parts.filter((key) => sets[key.key].size === 1);
  say([
    { heatmap: "", lines: "bars: 95 % confidence interval of the median", pareto: "line: Pareto front, the points that no other dominates" }[state.kind],
    single.length ? `only ${single.map((key) => phrase(key, [...sets[key.key]][0])).join(", ")}` : "",
  ].filter(Boolean).join("; "));
  const drawer = { heatmap, lines, pareto }[state.kind](cells, sets);
  byId("panels").className = panels.size === 1 ? "one" : "";
  const named = parts.filter((key) => sets[key.key].size > 1);
  // The queues change fastest: they stand beside each other.
  const order = [...parts].sort((a, b) => (a.key === "label") - (b.key === "label"));
  const rank = (members) => order.map((key) => key.indices[members[0]]);
  const ordered = [...panels.values()].sort((a, b) => rank(a).map((index, at) => index - rank(b)[at]).find((gap) => gap !== 0) ?? 0);
  // All at first: the width of each depends on their number.
  const boxes = ordered.map(() => element("div", { className: "drawn" }));
  byId("panels").replaceChildren(...ordered.map((members, at) => element(
    "div", { className: "panel" }, element("h3", { textContent: setting(members[0], named) }), boxes[at])));
  for (const [at, members] of ordered.entries()) {
    const drawn = boxes[at];
    const { traces, layout } = drawer(members);
    Plotly.newPlot(drawn, traces, {
      font: FONT, margin: { l: 50, r: 10, t: 8, b: 40 }, paper_bgcolor: "#fff", plot_bgcolor: "#fff", hovermode: "closest",
      showlegend: state.kind !== "heatmap" && traces.filter((trace) => trace.name).length > 1,
      legend: { orientation: "h", y: 1.02, yanchor: "bottom", x: 0 }, hoverlabel: { align: "left" }, ...layout,
    }, CONFIG);
  }
}

/* The table of the chosen cells, and all their figures as CSV. */
function shownMetrics() {
  const names = state.kind === "pareto" ? [state.cost, state.gain] : [state.metric];
  return [...new Set(names)].map(metricOf);
}

function table(cells) {
  const columns = [
    ...keys.filter((key) => key.texts.length > 1 || key.key === "label").map((key) => ({ name: key.key, words: key.words, value: (cell) => key.indices[cell], text: (cell) => key.texts[key.indices[cell]], isNumber: Boolean(key.numbers) })),
    ...shownMetrics().map((metric) => ({ name: metric.name, words: axisOf(metric), value: (cell) => metric.middle[cell] ?? -Infinity, metric, isNumber: true })),
    { name: "runs", words: "runs", value: (cell) => runsOf(shownMetrics()[0], cell), text: (cell) => String(runsOf(shownMetrics()[0], cell)), isNumber: true },
  ];
  const by = columns.find((column) => column.name === state.sort?.name);
  const ordered = by ? [...cells].sort((a, b) => (by.value(a) - by.value(b)) * state.sort.sign) : cells;
  document.querySelector("#cells thead").replaceChildren(element("tr", {}, ...columns.map((column) => {
    const sign = state.sort?.name === column.name ? state.sort.sign : 0;
    const button = element("button", { type: "button", textContent: `${column.words}${sign > 0 ? " ↑" : sign < 0 ? " ↓" : ""}` });
    button.addEventListener("click", () => { state.sort = { name: column.name, sign: sign > 0 ? -1 : 1 }; table(cells); });
    const heading = element("th", { scope: "col", className: column.isNumber ? "number" : "" }, button);
    if (sign) heading.ariaSort = sign > 0 ? "ascending" : "descending";
    return heading;
  })));
  document.querySelector("#cells tbody").replaceChildren(...ordered.slice(0, MOST_ROWS).map((cell) => element("tr", {}, ...columns.map((column) => {
    const made = element("td", { className: column.isNumber ? "number" : "" });
    if (!column.metric) made.textContent = column.text(cell);
    else {
      const [middle, interval] = figure(column.metric, cell).split(" [");
      made.append(column.metric.middle[cell] === null ? "–" : short(column.metric.middle[cell]));
      if (interval && middle) made.append(" ", element("small", { textContent: `[${interval}` }));
    }
    return made;
  }))));
  byId("more").textContent = ordered.length > MOST_ROWS ? `${MOST_ROWS} of ${ordered.length} cells; the CSV file has all.` : `${ordered.length} cells.`;
  byId("csv").onclick = () => {
    const link = element("a", { download: "cells.csv", href: URL.createObjectURL(new Blob([csv(ordered)], { type: "text/csv" })) });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  };
}

function csv(cells) {
  const quoted = (text) => (/[",\n\r]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text);
  // A spreadsheet would calculate a text that begins like a formula.
  const field = (text) => quoted(Number.isNaN(Number(text)) ? text.replace(/^[=+\-@\t\r]/, "'$&") : text);
  const name = (metric) => [metric.name, `${metric.name}.low`, `${metric.name}.high`, `${metric.name}.runs`];
  const value = (metric, list, cell) => (Number.isFinite(list?.[cell]) ? String(Number((list[cell] * metric.per).toPrecision(7))) : "");
  const rows = [[...keys.map((key) => key.key), ...metrics.flatMap(name)]];
  for (const cell of cells) {
    rows.push([...keys.map((key) => key.texts[key.indices[cell]]), ...metrics.flatMap((metric) => [
      value(metric, metric.middle, cell), value(metric, metric.low ?? metric.middle, cell), value(metric, metric.high ?? metric.middle, cell), String(runsOf(metric, cell)),
    ])]);
  }
  return rows.map((row) => row.map(field).join(",")).join("\r\n") + "\r\n";
}

async function start() {
  const script = element("script", { textContent: await unpacked("plotly") });
  document.head.append(script);
  data = JSON.parse(await unpacked("data"));
  ({ keys, metrics } = data);
  byId("plotly").remove();
  byId("data").remove();
  const several = keys.filter((key) => key.texts.length > 1 && key.key !== "label").sort((a, b) => b.texts.length - a.texts.length);
  const first = (name) => (metricOf(name) ?? metrics[0]).name;
  Object.assign(state, {
    x: (several[0] ?? keys[keys.length - 1]).key, y: (several[1] ?? keyOf("label")).key,
    metric: first("sojourn_p95_ms"), cost: first("sojourn_p95_ms"), gain: first("goodput_bps"),
  });
  draw();
  document.documentElement.dataset.ready = "yes";
}

start().catch((error) => say(`The page cannot be shown: ${error.message}`, true));
