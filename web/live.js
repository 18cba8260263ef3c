// The live view: a run that goes on while its queue, its delays, rates and windows are drawn.

import { Delays, Lines, Rates } from "./charts.js";
import { colour, restyle } from "./colours.js";
import { Worked } from "./lab.js";
import { Sliders } from "./sliders.js";
import { ARRIVED, eventsOf, Queue } from "./queue.js";
import { Wall } from "./wall.js";

const byId = (id) => document.getElementById(id);
/** How far the screen lags behind the run, in seconds of the screen: so packets can be seen on their way to the queue. */
const LAG_S = 0.35;
/** Names that a legend has room for. */
const MOST_NAMED = 24;
/** A watched run has no end of its own. */
const ENDLESS = ["experiment.duration", "86400 s"];
/** Speeds to choose from, simulated seconds per second. */
const SPEEDS = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50];

export class Live {
  /** `onMistake` hears what went wrong, in words. */
  constructor(onMistake) {
    this.onMistake = onMistake;
    this.isPlaying = false;
    this.speed = 0.1;
    this.arm = 0;
    this.wall = new Wall(byId("wall"));
    this.delays = new Delays(byId("delays"));
    this.rates = new Rates(byId("rates"));
    this.windows = new Lines(byId("windows"), () => this.rates.samples);
    this.sliders = new Sliders((key, value) => this.set(key, value));
    byId("speed").max = SPEEDS.length - 1;
    byId("speed").addEventListener("input", (event) => this.pace(Number(event.target.value)));
    byId("play").addEventListener("click", () => this.play(!this.isPlaying));
    byId("again").addEventListener("click", () => this.begin());
    byId("step").addEventListener("click", () => this.stepOnce());
    byId("by-flow").addEventListener("change", (event) => {
      this.wall.byFlow = event.target.checked;
      this.draw();
    });
    this.pace(SPEEDS.indexOf(0.1));
    new ResizeObserver(() => this.draw()).observe(byId("live"));
  }

  pace(index) {
    this.speed = SPEEDS[index];
    byId("speed").value = index;
    const told = this.speed < 1 ? `1/${Math.round(1 / this.speed)}` : `${this.speed}×`;
    byId("pace").textContent = told;
    byId("speed").setAttribute("aria-valuetext", `${told} of real time`);
    this.draw();
  }

  /** Watches a file `{ name, text, set }`, whose reading gave `plan`. */
  async watch(file, plan, about) {
    this.file = file;
    this.plan = plan;
    this.about = about;
    if (this.arm >= plan.arms.length) this.arm = 0;
    this.arms();
    await this.beginFresh();
  }

  arms() {
    byId("arms").replaceChildren(
      ...this.plan.arms.map(({ label }, index) => {
        const button = Object.assign(document.createElement("button"), { textContent: label, type: "button" });
        button.setAttribute("aria-pressed", String(index === this.arm));
        button.addEventListener("click", () => {
          this.arm = index;
          this.arms();
          this.beginFresh();
        });
        return button;
      }),
    );
  }

  /** Begins a run with the values of the file. */
  beginFresh() {
    this.isFresh = true;
    this.moved = new Map();
    this.more = [];
    return this.begin();
  }

  /** Begins the run again, with what the sliders say. */
  async begin() {
    const turn = (this.turn = (this.turn ?? 0) + 1);
    // Until it has begun, the screen stays as it is.
    this.run = undefined;
    try {
      this.worked ??= Worked.create();
      const worked = await this.worked;
      const set = [ENDLESS, ["experiment.repeat", "1"], ...(this.file.set ?? []), ...this.more];
      await worked.call({ do: "read", name: this.file.name, text: this.file.text, set });
      const run = await worked.ask("watch", { index: this.arm });
      for (const [key, value] of this.moved) await worked.call({ do: "set", key, value });
      if (turn !== this.turn) return;
      this.start(run);
    } catch (error) {
      if (turn === this.turn) this.onMistake(error);
    }
  }

  start(run) {
    this.run = run;
    this.queues = run.queues.map(() => new Queue());
    if (!(this.shown < run.queues.length) || this.shownOf !== run.queues.map((queue) => queue.name).join()) this.shown = 0;
    this.shownOf = run.queues.map((queue) => queue.name).join();
    this.now = 0;
    this.ran = 0;
    this.delays.points = [];
    this.rates.samples = [];
    this.flows = run.flows.map((_, index) => index);
    this.isFinished = false;
    if (this.isFresh) {
      const aqm = run.queues[this.shown]?.aqm ?? "";
      this.wall.byFlow = /^(fq|sfq|cake|dualpi2|hhf)/.test(aqm);
      byId("by-flow").checked = this.wall.byFlow;
      this.sliders.show(run, this.about);
      this.legend();
      this.places();
    }
    this.isFresh = false;
    if (!this.isAsked) this.frame();
  }

  get rate() {
    return this.sliders.rateOf(this.run.queues[this.shown], this.now);
  }

  places() {
    const place = byId("places");
    place.hidden = this.run.queues.length < 2;
    place.replaceChildren(
      ...this.run.queues.map(({ name }, index) => {
        const button = Object.assign(document.createElement("button"), { textContent: name, type: "button" });
        button.setAttribute("aria-pressed", String(index === this.shown));
        button.addEventListener("click", () => {
          this.shown = index;
          this.delays.points = [];
          this.places();
          this.draw();
        });
        return button;
      }),
    );
  }

  legend() {
    const counts = {};
    for (const flow of this.run.flows) counts[flow.name] = (counts[flow.name] ?? 0) + 1;
    byId("legend").replaceChildren(
      ...this.run.flows.slice(0, MOST_NAMED).map((flow, index) => {
        const item = document.createElement("span");
        const dot = document.createElement("i");
        dot.style.background = colour(index);
        const way = this.run.flows.some((other) => other.direction !== flow.direction) ? ` ${flow.direction}` : "";
        const number = counts[flow.name] > 1 ? ` ${flow.within + 1}` : "";
        item.append(dot, `${flow.name}${number}${way}`);
        return item;
      }),
      this.run.flows.length > MOST_NAMED ? `and ${this.run.flows.length - MOST_NAMED} more` : "",
    );
  }

  play(isPlaying) {
    this.isPlaying = isPlaying;
    const button = byId("play");
    button.textContent = isPlaying ? "Pause" : "Play";
    button.setAttribute("aria-pressed", String(isPlaying));
    this.before = undefined;
    if (isPlaying && this.run && !this.isAsked) this.frame();
  }

  async stepOnce() {
    this.play(false);
    if (!this.run) return;
    // The time of a full packet on the link.
    await this.go(this.now + 12e3 / (this.rate ?? 20e6));
  }

  frame() {
    if (!this.isPlaying) return this.draw();
    this.isAsked = true;
    requestAnimationFrame(async (time) => {
      const turn = this.turn;
      // After a pause, or in a tab behind others, the run does not leap.
      const elapsed = Math.min((time - (this.before ?? time)) / 1e3, 0.1);
      this.before = time;
      if (this.run && !document.hidden && this.isPlaying) await this.go(this.now + elapsed * this.speed);
      this.isAsked = false;
      if (turn === this.turn || this.isPlaying) this.frame();
    });
  }

  /** Shows the instant `now`, for which the run goes on as far as the screen lags behind it. */
  async go(now) {
    const turn = this.turn;
    const lag = LAG_S * this.speed;
    const sample_s = Math.min(Math.max(this.window / 240, 0.0005), 0.1);
    try {
      if (now + lag > this.ran && !this.isFinished) {
        const worked = await this.worked;
        const step = await worked.ask("step", { until_s: now + lag, sample_s });
        if (turn !== this.turn) return;
        this.hear(step);
      }
      this.now = Math.min(now, Math.max(this.now, this.ran - lag * 0.5));
      this.queues.forEach((queue, index) => {
        queue.advance(this.now, (event) => {
          if (index === this.shown && event.what !== ARRIVED) this.delays.add(event);
        });
        queue.forget(this.now - Math.max(1.5 * lag, this.wall.crossing));
      });
      this.draw();
    } catch (error) {
      // A run that was replaced meanwhile has nothing to say.
      if (turn !== this.turn) return;
      this.play(false);
      this.onMistake(error);
    }
  }

  hear(step) {
    this.ran = step.now_s;
    this.isFinished = step.finished;
    for (const event of eventsOf(step.events)) this.queues[event.queue].add(event);
    const place = this.run.queues[this.shown];
    for (const sample of step.samples) this.rates.add({ ...sample, rate: this.sliders.rateOf(place, sample.now_s) });
  }

  /** The simulated seconds that the charts show. */
  get window() {
    return Math.min(Math.max(10 * this.speed, 0.25), 30);
  }

  draw() {
    if (!this.run) return;
    const queue = this.queues[this.shown];
    const place = this.run.queues[this.shown];
    const way = place?.direction;
    this.wall.draw(queue, this.now, { rate: this.rate, flows: this.run.flows, lag: LAG_S * this.speed });
    const [from, to] = [Math.max(0, this.now - this.window), Math.max(this.now, this.window)];
    const here = this.flows.filter((flow) => this.run.queues.length > 2 || this.run.flows[flow].direction === way);
    this.delays.draw(from, to);
    this.rates.draw(from, to, here, this.rate);
    this.windows.draw(from, to, here.map((flow) => [colour(flow), (sample) => sample.flows[flow]?.cwnd_segments]), 4);
    this.tell(queue);
  }

  tell(queue) {
    // Without a rate: what the packets that left last had.
    const latest = () => this.rates.samples.findLast((sample) => sample.queues[this.shown].packets)?.queues[this.shown];
    const delay = this.rate ? (queue.bytes * 8e3) / this.rate : (latest()?.sojourn_mean_ms ?? 0);
    byId("told-time").textContent = `${this.now.toFixed(this.speed < 0.02 ? 3 : 2)} s`;
    byId("told-delay").textContent = `${delay < 10 ? delay.toFixed(1) : Math.round(delay)} ms`;
    byId("told-waiting").textContent = queue.waiting.length;
    byId("told-dropped").textContent = queue.counts.dropped;
    byId("told-marked").textContent = queue.counts.marked;
  }

  /** A slider was moved. What a discipline does not change while it runs begins anew with it. */
  async set(key, value) {
    const worked = await this.worked;
    if (!this.run) return;
    try {
      await worked.call({ do: "set", key, value });
      this.moved.set(key, value);
    } catch (error) {
      if (!/cannot (be )?change/.test(error.message)) return this.onMistake(error);
      const written = key.replace(/^queue\./, `queue.${this.arm}.`);
      this.more = [...this.more.filter(([known]) => known !== written), [written, value]];
      // A slider that is being moved begins one run, not one for each of its steps.
      clearTimeout(this.waiting);
      this.waiting = setTimeout(() => this.begin(), 200);
    }
  }

  restyle() {
    restyle();
    if (this.run) this.legend();
    this.draw();
  }
}
