// What happens over time, beside the queue: delays of packets, rates and windows of flows.

import { colour, fitted, marks, nice, Rectangles, shortly, styled } from "./colours.js";
import { DROPPED, MARKED } from "./queue.js";

const LEFT = 40;
const MOST_POINTS = 3000;

class Plot {
  constructor(canvas) {
    this.canvas = canvas;
    this.top = 0;
  }

  /** The frame for times from `from` to `to` and values from 0 to `top`; returns how to place both. */
  frame(from, to, top) {
    const { context, width, height } = fitted(this.canvas);
    this.top = top > this.top ? top : this.top + (top - this.top) * 0.08;
    const scale = nice(this.top);
    const bottom = height - 16;
    const x = (time) => LEFT + ((time - from) / (to - from)) * (width - LEFT - 4);
    const y = (value) => bottom - (value / scale) * (bottom - 8);
    context.font = `11px ${styled("font")}`;
    context.textAlign = "right";
    context.textBaseline = "middle";
    for (const mark of marks(scale)) {
      context.fillStyle = styled("line");
      context.fillRect(LEFT, Math.round(y(mark)), width - LEFT - 4, 1);
      context.fillStyle = styled("quiet");
      context.fillText(shortly(mark), LEFT - 6, y(mark));
    }
    context.textBaseline = "alphabetic";
    context.textAlign = "left";
    context.fillText(`${shortly(Math.max(from, 0))} s`, LEFT, height - 3);
    context.textAlign = "right";
    context.fillText(`${to.toFixed(to - from < 2 ? 2 : 1)} s`, width - 4, height - 3);
    context.save();
    context.beginPath();
    context.rect(LEFT, 2, width - LEFT - 4, bottom);
    context.clip();
    return { context, x, y, bottom };
  }
}

/** The delay of every packet, a point in the colour of its flow; what was dropped or marked stands out. */
export class Delays extends Plot {
  points = [];
  /** Of so many packets one is kept, so that points reach over all of the time that is shown; and what was dropped. */
  every = 1;
  heard = 0;

  add(event) {
    if (this.heard++ % this.every && !DROPPED.includes(event.what)) return;
    this.points.push(event);
    if (this.points.length < 4 * MOST_POINTS) return;
    this.points = this.points.filter((_, index) => index % 2);
    this.every *= 2;
  }

  draw(from, to) {
    const first = this.points.findIndex((point) => point.time >= from);
    const seen = first < 0 ? [] : this.points.slice(first);
    this.points = seen;
    if (seen.length < MOST_POINTS && this.every > 1) this.every /= 2;
    const top = seen.reduce((most, { time, entered }) => Math.max(most, time - entered), 0) * 1e3;
    const { context, x, y } = this.frame(from, to, Math.max(top * 1.05, 2));
    const drawn = new Rectangles();
    const every = Math.max(1, Math.ceil(seen.length / MOST_POINTS));
    seen.forEach((point, index) => {
      const isDropped = DROPPED.includes(point.what);
      if (!isDropped && point.what !== MARKED && index % every) return;
      const [px, py] = [x(point.time), y((point.time - point.entered) * 1e3)];
      const fill = isDropped ? styled("drop") : point.what === MARKED ? styled("mark") : colour(point.flow);
      if (isDropped) {
        drawn.add(fill, px - 3, py - 1, 6, 2);
        drawn.add(fill, px - 1, py - 3, 2, 6);
      } else drawn.add(fill, px - 1, py - 1, 2, 2);
    });
    drawn.fill(context);
    context.restore();
  }
}

/** Rates of the flows, one upon the other, below the rate of the link. */
export class Rates extends Plot {
  samples = [];

  add(sample) {
    this.samples.push(sample);
    if (this.samples.length > 4000) this.samples.splice(0, 1000);
  }

  draw(from, to, flows, rate) {
    const seen = this.samples.filter((sample) => sample.now_s >= from - (to - from) / 20);
    const smooth = Math.max(1, Math.round(seen.length / 14));
    const columns = seen.map((sample, index) => {
      const some = seen.slice(Math.max(0, index - smooth + 1), index + 1);
      const mean = (flow) => some.reduce((sum, one) => sum + (one.flows[flow]?.goodput_bps ?? 0), 0) / some.length;
      return { time: sample.now_s, values: flows.map((flow) => mean(flow) / 1e6), rate: (sample.rate ?? 0) / 1e6 };
    });
    const sums = columns.map((column) => column.values.reduce((sum, value) => sum + value, 0));
    const { context, x, y } = this.frame(from, to, Math.max((rate ?? 0) / 1e6, 0.1, ...sums) * 1.08);
    const below = columns.map(() => 0);
    flows.forEach((flow, row) => {
      context.beginPath();
      columns.forEach((column, index) => context.lineTo(x(column.time), y(below[index] + column.values[row])));
      for (let index = columns.length - 1; index >= 0; index--) context.lineTo(x(columns[index].time), y(below[index]));
      context.fillStyle = colour(flow);
      context.globalAlpha = 0.8;
      context.fill();
      columns.forEach((column, index) => (below[index] += column.values[row]));
    });
    context.globalAlpha = 1;
    context.beginPath();
    if (rate) columns.forEach((column) => context.lineTo(x(column.time), y(column.rate)));
    context.strokeStyle = styled("ink");
    context.lineWidth = 1.5;
    context.setLineDash([4, 3]);
    context.stroke();
    context.setLineDash([]);
    context.restore();
  }
}

/** Lines over time. */
export class Lines extends Plot {
  constructor(canvas, samples) {
    super(canvas);
    this.samples = samples;
  }

  /** Draws `[colour, value]` each, where `value` gives that of a sample or nothing; the axis reaches at least `least`. */
  draw(from, to, lines, least) {
    const seen = this.samples().filter((sample) => sample.now_s >= from - (to - from) / 20);
    let top = least;
    for (const [, value] of lines) for (const sample of seen) top = Math.max(top, value(sample) ?? 0);
    const { context, x, y } = this.frame(from, to, top * 1.08);
    context.lineWidth = 1.8;
    context.lineJoin = "round";
    for (const [stroke, value] of lines) {
      context.beginPath();
      for (const sample of seen) {
        const known = value(sample) ?? null;
        if (known !== null) context.lineTo(x(sample.now_s), y(known));
      }
      context.strokeStyle = stroke;
      context.stroke();
    }
    context.restore();
  }
}
