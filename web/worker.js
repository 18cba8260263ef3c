// What runs beside the page: an engine that answers one message after the other.

import { Engine } from "./engine.js";

/** Events between two reports of a run's progress. */
const EVENTS_PER_REPORT = 200_000;
/** Milliseconds after which a step of the live view ends early, so that the page stays at its frame rate. */
const LONGEST_STEP_MS = 22;

let engine;
/** The simulator counts nanoseconds: instants closer than this are one. */
const INSTANT_S = 1e-9;

let now = 0;
let nextSample = 0;

const jobs = {
  async start({ bytes }) {
    engine = await Engine.from(bytes);
    return {};
  },

  call({ request }) {
    return engine.call(request);
  },

  /** One run of the file that was read, to its end. */
  run({ index }, report) {
    engine.call({ do: "begin", run: index });
    for (;;) {
      const at = engine.call({ do: "advance", until_s: null, events: EVENTS_PER_REPORT });
      if (at.finished) break;
      report(at.now_s / at.end_s);
    }
    return engine.call({ do: "finish" });
  },

  /** Begins a watched run. */
  watch({ index }) {
    now = 0;
    nextSample = Infinity;
    const begun = engine.call({ do: "begin", run: index, watch: true });
    engine.call({ do: "observe" });
    return begun;
  },

  /** Continues the watched run to `until_s`, with a sample every `sample_s`. */
  step({ until_s: until, sample_s: sample }) {
    const began = performance.now();
    const samples = [];
    let at = { now_s: now, finished: false };
    nextSample = Math.min(nextSample, now + sample);
    while (at.now_s < until - INSTANT_S && !at.finished && performance.now() - began < LONGEST_STEP_MS) {
      at = engine.call({ do: "advance", until_s: Math.min(until, nextSample), events: null });
      if (at.now_s >= nextSample - INSTANT_S || at.finished) {
        samples.push(engine.call({ do: "observe" }));
        nextSample = at.now_s + sample;
      }
    }
    now = at.now_s;
    return { now_s: now, finished: at.finished, samples, events: engine.events() };
  },
};

self.onmessage = async ({ data }) => {
  try {
    const reply = await jobs[data.job](data, (share) => self.postMessage({ id: data.id, share }));
    self.postMessage({ id: data.id, reply }, reply.events ? [reply.events.buffer] : []);
  } catch (error) {
    const { message, line, column } = error;
    self.postMessage({ id: data.id, error: { message, line, column } });
  }
};
