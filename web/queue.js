// The packets at a queue, as the simulator's events tell them.

import { EVENT_VALUES } from "./engine.js";

/** As `Happened` of the simulator. */
export const MARKED = 1;
export const DROPPED = [2, 3, 4];
export const ARRIVED = 5;

/** One queue: who waits, in the order of arrival, and what happened lately. */
export class Queue {
  constructor() {
    this.waiting = [];
    this.bytes = 0;
    this.ahead = [];
    this.flying = [];
    this.counts = { left: 0, dropped: 0, marked: 0 };
  }

  /** Adds an event that has not happened yet on the screen. */
  add(event) {
    this.ahead.push(event);
  }

  /** Lets everything happen up to `now`. `heard` hears each event. */
  advance(now, heard) {
    let done = 0;
    while (done < this.ahead.length && this.ahead[done].time <= now) {
      const event = this.ahead[done++];
      this.happen(event);
      heard?.(event);
    }
    if (done) this.ahead.splice(0, done);
  }

  happen(event) {
    if (event.what === ARRIVED) {
      this.waiting.push(event);
      this.bytes += event.bytes;
      return;
    }
    const isDropped = DROPPED.includes(event.what);
    const at = this.find(event, isDropped);
    if (at < 0) return;
    let before = 0;
    if (isDropped) for (let index = 0; index < at; index++) before += this.waiting[index].bytes;
    if (at === 0) this.waiting.shift();
    else this.waiting.splice(at, 1);
    this.bytes -= event.bytes;
    this.flying.push({ ...event, isDropped, before });
    this.counts[isDropped ? "dropped" : "left"] += 1;
    if (event.what === MARKED) this.counts.marked += 1;
  }

  /** The packet that an event is about. What is dropped on arrival is the newest of its flow. */
  find(event, isDropped) {
    const isSame = (packet) => packet.flow === event.flow && packet.returning === event.returning;
    const exact = this.waiting.findIndex((packet) => isSame(packet) && packet.entered === event.entered);
    if (exact >= 0 || !isDropped) return exact;
    return this.waiting.findLastIndex(isSame);
  }

  /** Forgets what left or was dropped before an instant. */
  forget(before) {
    const kept = this.flying.findIndex((packet) => packet.time >= before);
    this.flying.splice(0, kept < 0 ? this.flying.length : kept);
  }
}

/** The events of a step, in order of time for each queue. */
export function* eventsOf(values) {
  for (let at = 0; at < values.length; at += EVENT_VALUES) {
    yield {
      queue: values[at],
      what: values[at + 1],
      flow: values[at + 2],
      bytes: values[at + 3],
      returning: values[at + 4],
      time: values[at + 5],
      entered: values[at + 6],
    };
  }
}
