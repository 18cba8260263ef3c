// The queue, drawn to scale: a packet is as wide as the time that it takes on the link, so that the length of the queue is the
// delay of the next packet.

import { colour, fitted, marks, nice, Rectangles, shortly, styled } from "./colours.js";
import { ARRIVED, MARKED } from "./queue.js";

/** The share of the width behind the link's entry, where packets are on the wire. */
const WIRE = 0.16;
/** The share of the height below, into which dropped packets fall. */
const PIT = 0.2;
/** The least full scale: milliseconds, or where a link has no rate of its own kilobytes. */
const LEAST = 12;

export class Wall {
  constructor(canvas) {
    this.canvas = canvas;
    this.full = 50;
    this.byFlow = false;
    /** Simulated seconds for which a packet is seen on the wire. */
    this.crossing = 1;
  }

  /** Draws a queue at `now`; `view` has the rate in bit/s, the flows, what a second of the screen is in simulated seconds. */
  draw(queue, now, view) {
    const { context, width, height } = fitted(this.canvas);
    const right = Math.round(width * (1 - WIRE));
    const top = 26;
    const bottom = Math.round(height * (1 - PIT));
    const lanes = this.byFlow ? this.lanes(queue, view.flows.length) : [queue.waiting];
    const perByteOf = view.rate ? 8e3 / view.rate : 1e-3;
    this.unit = view.rate ? "ms" : "kB";
    const longest = Math.max(...lanes.map((lane) => lane.reduce((sum, packet) => sum + packet.bytes, 0))) * perByteOf;
    const wanted = nice(Math.max(longest * 1.12, LEAST));
    // The scale glides, and shrinks only when there is much room.
    const target = wanted > this.full || longest < this.full * 0.35 ? wanted : this.full;
    this.full += (target - this.full) * 0.12;
    if (Math.abs(target - this.full) < target * 0.01) this.full = target;
    const perUnit = right / this.full;
    this.crossing = view.rate ? (width - right) / perUnit / 1e3 : view.lag;
    const perByte = perByteOf * perUnit;
    this.axis(context, right, top, bottom, perUnit);
    const tall = (bottom - top) / lanes.length;
    lanes.forEach((lane, row) => {
      this.lane(context, lane, right, top + row * tall, tall, perByte, lanes.length > 1);
    });
    this.link(context, right, top, bottom, width, height);
    this.flights(context, queue, now, view, { right, top, bottom, width, height, perByte, perUnit, tall, lanes: lanes.length });
  }

  lanes(queue, flows) {
    const lanes = Array.from({ length: Math.max(1, Math.min(flows, 12)) }, () => []);
    for (const packet of queue.waiting) lanes[packet.flow % lanes.length].push(packet);
    return lanes;
  }

  lane(context, lane, right, top, tall, perByte, isOne) {
    const gap = Math.min(1, perByte * 1500 * 0.12);
    const inset = isOne ? Math.min(3, tall * 0.12) : 4;
    let x = right;
    const drawn = new Rectangles();
    for (const packet of lane) {
      const wide = packet.bytes * perByte;
      x -= wide;
      if (x + wide < 0) break;
      // What travels back, such as acknowledgements, is lower.
      const less = packet.returning ? (tall - 2 * inset) * 0.3 : 0;
      drawn.add(colour(packet.flow), x + gap / 2, top + inset + less, Math.max(0.6, wide - gap), tall - 2 * inset - 2 * less);
    }
    drawn.fill(context);
    if (isOne) {
      context.fillStyle = styled("line");
      context.fillRect(0, top + tall - 0.5, right, 1);
    }
  }

  axis(context, right, top, bottom, perUnit) {
    context.font = `11px ${styled("font")}`;
    context.textBaseline = "alphabetic";
    context.textAlign = "center";
    for (const mark of marks(this.full)) {
      const x = right - mark * perUnit;
      context.fillStyle = styled("line");
      context.fillRect(Math.round(x), top - 6, 1, bottom - top + 6);
      context.fillStyle = styled("quiet");
      if (mark === 0) continue;
      context.textAlign = x < 24 ? "left" : "center";
      context.fillText(`${shortly(mark)} ${this.unit}`, Math.max(2, x), top - 11);
    }
  }

  link(context, right, top, bottom, width, height) {
    context.fillStyle = styled("ink");
    context.fillRect(right, top - 6, 2, bottom - top + 12);
    context.textAlign = "left";
    context.fillStyle = styled("quiet");
    context.font = `11px ${styled("font")}`;
    context.fillText("link →", right + 8, top - 11);
    context.fillText("dropped ↓", 4, height - 6);
  }

  flights(context, queue, now, view, place) {
    const { right, top, bottom, width, height, perByte, perUnit, tall, lanes } = place;
    const span = view.lag;
    const laneOf = (packet) => (lanes > 1 ? top + (packet.flow % lanes) * tall : top);
    let shown = 0;
    // Arriving: from the left edge to the tail, within the time that the screen lags behind.
    const tails = Array.from({ length: lanes }, () => right);
    for (const packet of queue.waiting) tails[packet.flow % lanes] -= packet.bytes * perByte;
    for (const packet of queue.ahead) {
      if (packet.what !== ARRIVED || packet.time - now > span || shown++ > 400) continue;
      const share = 1 - (packet.time - now) / span;
      const wide = Math.max(2, Math.min(packet.bytes * perByte, 14));
      const x = -wide + share * share * (Math.max(tails[packet.flow % lanes], 20) - 4);
      const y = laneOf(packet) + tall / 2 - 5;
      context.globalAlpha = 0.25 + 0.6 * share;
      context.fillStyle = colour(packet.flow);
      context.fillRect(x, y + ((packet.flow % 5) - 2) * Math.min(9, tall / 8), wide, 9);
    }
    context.globalAlpha = 1;
    const onWire = new Rectangles();
    const pace = view.rate ? 1e3 * perUnit : (width - right) / span;
    for (const packet of queue.flying) {
      const age = (now - packet.time) / span;
      if (age < 0) continue;
      const wide = Math.max(1.5, packet.bytes * perByte);
      if (packet.isDropped) this.fall(context, packet, age, right - packet.before * perByte, bottom, height);
      else {
        // On the wire it goes on at the pace at which the queue drains.
        const x = right + 3 + Math.max((now - packet.time) * pace - wide, 0);
        if (x > width) continue;
        const wire = top + (bottom - top) / 2 - 13;
        onWire.add(colour(packet.flow), x, wire, Math.min(wide, width - x) - Math.min(1, wide * 0.2), 26);
        if (packet.what === MARKED) onWire.add(styled("mark"), x, wire - 6, Math.max(2, Math.min(wide - 1, width - x)), 4);
      }
    }
    onWire.fill(context);
  }

  fall(context, packet, age, x, bottom, height) {
    if (age > 1.4) return;
    const y = bottom + 4 + age * age * (height - bottom) * 0.8;
    const at = Math.max(8, Math.min(x, this.canvas.clientWidth - 8)) + Math.sin(packet.time * 1e4) * 14 * age;
    context.globalAlpha = Math.max(0, 1 - age / 1.4);
    context.fillStyle = colour(packet.flow);
    context.fillRect(at - 5, y, 10, 10);
    context.strokeStyle = styled("drop");
    context.lineWidth = 2;
    context.beginPath();
    context.moveTo(at - 6, y - 1);
    context.lineTo(at + 6, y + 11);
    context.moveTo(at + 6, y - 1);
    context.lineTo(at - 6, y + 11);
    context.stroke();
    context.globalAlpha = 1;
  }
}
