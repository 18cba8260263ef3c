// Marks of results, as SVG: points with ranges, lines over a swept key, distributions.

import { colour, marks, nice, shortly } from "./colours.js";

const NAMESPACE = "http://www.w3.org/2000/svg";
const WIDTH = 340;
/** The width of a letter, nearly. */
const LETTER = 5.8;

function node(name, attributes = {}, text = undefined) {
  const made = document.createElementNS(NAMESPACE, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

function picture(height, title, words) {
  const figure = document.createElement("figure");
  const caption = document.createElement("figcaption");
  caption.textContent = title;
  const svg = node("svg", { viewBox: `0 0 ${WIDTH} ${height}`, role: "img" });
  svg.append(node("title", {}, words));
  figure.append(caption, svg);
  return { figure, svg };
}

/** A scale from values to places; logarithmic where values differ by more than a factor of eight. */
function scale(values, from, to, ends = null) {
  const positive = values.filter((value) => value > 0);
  const [low, high] = [Math.min(...positive), Math.max(...values)];
  if (!ends && positive.length === values.length && high > 8 * low) {
    const [first, last] = [Math.floor(Math.log10(low * 0.8)), Math.log10(high * 1.25)];
    const place = (value) => from + ((Math.log10(value) - first) / (last - first)) * (to - from);
    const steps = [];
    for (let power = first; power <= last; power++) steps.push(10 ** power);
    return { place, marks: steps.filter((step) => Math.log10(step) <= last), isLogarithmic: true };
  }
  const [bottom, top] = ends ?? [0, nice(Math.max(...values, 1e-9) * 1.02)];
  const place = (value) => from + ((value - bottom) / (top - bottom)) * (to - from);
  return { place, marks: marks(top, bottom) };
}

/** A row per cell: a point at the median, a line over the range, and faint points for the runs. */
export function points(title, rows, ends) {
  const height = rows.length * 22 + 26;
  const left = Math.min(150, 16 + 6.6 * Math.max(...rows.map((row) => row.name.length)));
  const all = rows.flatMap((row) => (row.spread ? [row.spread.low, row.spread.high] : []));
  const words = rows.map((row) => `${row.name}: ${row.spread ? shortly(row.spread.median) : "none"}`).join("; ");
  const { figure, svg } = picture(height, title, `${title}: ${words}`);
  if (!all.length) return figure;
  const x = scale(all, left, WIDTH - 14, ends);
  for (const mark of x.marks) {
    const at = x.place(mark);
    if (at < left - 1) continue;
    svg.append(node("line", { x1: at, x2: at, y1: 4, y2: height - 20, class: "grid" }));
    svg.append(node("text", { x: at, y: height - 6, "text-anchor": "middle" }, shortly(mark)));
  }
  rows.forEach((row, index) => {
    const y = index * 22 + 15;
    svg.append(node("text", { x: left - 10, y: y + 4, "text-anchor": "end", class: "name" }, shortened(row.name)));
    if (!row.spread) return;
    const { low, high, median, values } = row.spread;
    const fill = colour(row.colour);
    svg.append(node("line", { x1: x.place(low), x2: x.place(high), y1: y, y2: y, stroke: fill, "stroke-width": 3, "stroke-linecap": "round", opacity: 0.45 }));
    if (values.length > 1 && values.length <= 200) {
      for (const value of values) svg.append(node("circle", { cx: x.place(value), cy: y, r: 2, fill, opacity: 0.45 }));
    }
    svg.append(node("circle", { cx: x.place(median), cy: y, r: 5, fill }));
  });
  return figure;
}

const shortened = (name) => (name.length > 22 ? `${name.slice(0, 21)}…` : name);

/** A line per queue over the values of a swept key. */
export function lines(title, key, series) {
  const height = 190;
  const { figure, svg } = picture(height, title, `${title} over ${key}`);
  const all = series.flatMap((line) => line.points.flatMap((point) => [point.spread.low, point.spread.high]));
  const xs = series.flatMap((line) => line.points.map((point) => point.x));
  if (!all.length) return figure;
  const y = scale(all, height - 36, 10);
  const isWide = Math.min(...xs) > 0 && Math.max(...xs) > 8 * Math.min(...xs);
  const of = (value) => (isWide ? Math.log(value) : value);
  const [first, last] = [of(Math.min(...xs)), of(Math.max(...xs))];
  const place = (value) => 46 + ((of(value) - first) / (last - first || 1)) * (WIDTH - 66);
  for (const mark of y.marks) {
    const at = y.place(mark);
    svg.append(node("line", { x1: 46, x2: WIDTH - 14, y1: at, y2: at, class: "grid" }));
    svg.append(node("text", { x: 40, y: at + 4, "text-anchor": "end" }, shortly(mark)));
  }
  const told = new Map(series.flatMap((line) => line.points.map((point) => [point.x, point.told])));
  let before = -Infinity;
  for (const [value, text] of [...told].sort((a, b) => a[0] - b[0])) {
    const half = (text.length * LETTER) / 2;
    // Within the figure, and beside the one before.
    const x = Math.min(place(value), WIDTH - 2 - half);
    if (x - half < before + LETTER) continue;
    before = x + half;
    svg.append(node("text", { x, y: height - 20, "text-anchor": "middle" }, text));
  }
  svg.append(node("text", { x: WIDTH / 2, y: height - 5, "text-anchor": "middle" }, key));
  for (const line of series) {
    const stroke = colour(line.colour);
    const sorted = [...line.points].sort((a, b) => a.x - b.x);
    const band = [...sorted.map((point) => [point.x, point.spread.high]), ...sorted.toReversed().map((point) => [point.x, point.spread.low])];
    svg.append(node("polygon", { points: band.map(([at, value]) => `${place(at)},${y.place(value)}`).join(" "), fill: stroke, opacity: 0.15 }));
    svg.append(node("polyline", { points: sorted.map((point) => `${place(point.x)},${y.place(point.spread.median)}`).join(" "), fill: "none", stroke, "stroke-width": 2, "stroke-linejoin": "round" }));
    for (const point of sorted) svg.append(node("circle", { cx: place(point.x), cy: y.place(point.spread.median), r: 3, fill: stroke }));
  }
  return figure;
}

/** The share of packets up to each sojourn time, a line per cell. */
export function distribution(title, series) {
  const height = 190;
  const { figure, svg } = picture(height, title, title);
  const shown = series.filter((line) => line.delays.length);
  const all = shown.flatMap((line) => line.delays.filter((delay) => delay > 0));
  if (!all.length) return figure;
  const low = Math.max(Math.min(...all), Math.max(...all) / 1e4);
  const x = scale([low, Math.max(...all)], 46, WIDTH - 14);
  const y = (share) => height - 36 - share * (height - 48);
  for (const share of [0, 0.5, 0.95, 1]) {
    svg.append(node("line", { x1: 46, x2: WIDTH - 14, y1: y(share), y2: y(share), class: "grid" }));
    if (share !== 1) svg.append(node("text", { x: 40, y: y(share) + 4, "text-anchor": "end" }, `${share * 100} %`));
  }
  for (const mark of x.marks) {
    if (x.place(mark) < 45) continue;
    svg.append(node("line", { x1: x.place(mark), x2: x.place(mark), y1: 10, y2: height - 36, class: "grid" }));
    svg.append(node("text", { x: x.place(mark), y: height - 20, "text-anchor": "middle" }, shortly(mark)));
  }
  svg.append(node("text", { x: WIDTH / 2, y: height - 5, "text-anchor": "middle" }, "sojourn time [ms]"));
  for (const line of shown) {
    let d = "";
    line.delays.forEach((delay, index) => {
      const at = x.place(Math.max(delay, low));
      d += `${d ? "L" : "M"}${Math.max(46, at).toFixed(1)},${y(line.shares[index]).toFixed(1)}`;
    });
    svg.append(node("path", { d, fill: "none", stroke: colour(line.colour), "stroke-width": 2, "stroke-linejoin": "round" }));
  }
  return figure;
}
