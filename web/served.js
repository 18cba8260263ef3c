// A run that goes on at a server: its samples as they come, drawn; its link and its queue changed while it goes on.

import { Lines, Rates } from "./charts.js";
import { colour, restyle, styled } from "./colours.js";
import { Sliders } from "./sliders.js";

const byId = (id) => document.getElementById(id);
/** The seconds that the charts show. */
const WINDOW_S = 30;
/** Names that a legend has room for. */
const MOST_NAMED = 24;

/** A request to the server, with the token of the page's own address. */
const asked = (name, options) => fetch(name + location.search, options);

class Served {
  constructor(run) {
    this.run = run;
    this.flows = run.flows;
    this.shown = 0;
    this.isHeld = false;
    this.waiting = {};
    this.latest = undefined;
    this.rates = new Rates(byId("rates"));
    const lines = (id) => new Lines(byId(id), () => this.rates.samples);
    [this.delays, this.backlog, this.drops, this.trips] = ["delays", "backlog", "drops", "trips"].map(lines);
    this.sliders = new Sliders((key, value) => this.set(key, value));
    this.sliders.show(run, { disciplines: run.disciplines });
    byId("title").textContent = run.title;
    this.places();
    this.legend();
    byId("hold").addEventListener("click", () => this.hold(!this.isHeld));
    byId("theme").addEventListener("click", () => {
      const root = document.documentElement;
      root.dataset.theme = root.dataset.theme === "dark" ? "light" : "dark";
      byId("theme").textContent = root.dataset.theme === "dark" ? "Light" : "Dark";
      restyle();
      this.legend();
      this.draw();
    });
    new ResizeObserver(() => this.draw()).observe(byId("live"));
  }

  listen() {
    const events = new EventSource(`events${location.search}`);
    events.addEventListener("message", ({ data }) => {
      const { sample, set, end } = JSON.parse(data);
      if (sample) this.hear(sample);
      if (set) this.hearSet(...set);
      if (end) {
        events.close();
        tell("The run has ended.");
      }
    });
    events.addEventListener("error", () => tell("The server does not answer."));
    events.addEventListener("open", () => tell(""));
  }

  hear(sample) {
    if (sample.described && sample.described.length > this.flows.length) {
      this.flows = sample.described;
      this.legend();
    }
    const before = this.latest;
    const span = sample.now_s - (before?.now_s ?? 0);
    const more = (key, index) => Math.max(sample.queues[index][key] - (before?.queues[index][key] ?? 0), 0) / span;
    sample.queues.forEach((queue, index) => {
      queue.drops = more("dropped", index);
      queue.marks = more("marked", index);
    });
    this.latest = sample;
    this.rates.add({ ...sample, rate: this.rate });
    this.asked ??= requestAnimationFrame(() => {
      this.asked = undefined;
      this.draw();
    });
  }

  /** The rate of the shown queue's link in bit/s, if it has one. */
  get rate() {
    return this.sliders.rateOf(this.run.queues[this.shown], this.latest.now_s);
  }

  /** Another page, or this one, has changed a key. */
  hearSet(key, value) {
    const link = key.match(/^(.*)\.rate$/)?.[1];
    if (link) this.sliders.setRate(link, value);
  }

  set(key, value) {
    // A slider that is being moved asks for its last place.
    clearTimeout(this.waiting[key]);
    this.waiting[key] = setTimeout(async () => {
      const headers = { "Content-Type": "application/json" };
      const reply = await asked("set", { method: "POST", headers, body: JSON.stringify({ key, value }) });
      tell(reply.ok ? "" : await reply.text());
    }, 80);
  }

  hold(isHeld) {
    this.isHeld = isHeld;
    byId("hold").setAttribute("aria-pressed", String(isHeld));
    byId("hold").textContent = isHeld ? "Go on" : "Hold";
    this.held = this.latest?.now_s;
    this.draw();
  }

  places() {
    byId("places").hidden = this.run.queues.length < 2;
    byId("places").replaceChildren(
      ...this.run.queues.map(({ name }, index) => {
        const button = Object.assign(document.createElement("button"), { textContent: name, type: "button" });
        button.setAttribute("aria-pressed", String(index === this.shown));
        button.addEventListener("click", () => {
          this.shown = index;
          this.places();
          this.draw();
        });
        return button;
      }),
    );
  }

  legend() {
    byId("legend").replaceChildren(
      ...this.flows.slice(0, MOST_NAMED).map((flow, index) => {
        const item = document.createElement("span");
        const dot = document.createElement("i");
        dot.style.background = colour(index);
        const same = this.flows.filter(({ name, direction }) => name === flow.name && direction === flow.direction);
        const number = same.length > 1 ? ` ${same.indexOf(flow) + 1}` : "";
        item.append(dot, `${flow.name}${number} ${flow.direction}`);
        return item;
      }),
    );
  }

  draw() {
    if (!this.latest) return;
    const now = this.isHeld ? this.held : this.latest.now_s;
    const window = WINDOW_S * this.run.speed;
    const [from, to] = [Math.max(0, now - window), Math.max(now, window)];
    const of = (key, stroke) => [stroke, (sample) => sample.queues[this.shown][key]];
    const way = this.run.queues[this.shown].direction;
    const all = this.flows.map((_, index) => index);
    const here = this.run.queues.length > 2 ? all : all.filter((flow) => this.flows[flow].direction === way);
    this.delays.draw(from, to, [of("sojourn_max_ms", styled("edge")), of("sojourn_mean_ms", styled("accent"))], 2);
    this.rates.draw(from, to, here, this.rate);
    this.backlog.draw(from, to, [of("backlog_packets", styled("accent"))], 10);
    this.drops.draw(from, to, [of("marks", styled("mark")), of("drops", styled("drop"))], 10);
    this.trips.draw(from, to, all.map((flow) => [colour(flow), (sample) => sample.flows[flow]?.rtt_ms]), 10);
    const queue = this.latest.queues[this.shown];
    const delay = queue.sojourn_mean_ms ?? 0;
    byId("told-time").textContent = `${this.latest.now_s.toFixed(1)} s`;
    byId("told-delay").textContent = `${delay.toFixed(delay < 10 ? 1 : 0)} ms`;
    byId("told-waiting").textContent = queue.backlog_packets;
    byId("told-dropped").textContent = queue.dropped;
    byId("told-marked").textContent = queue.marked;
  }
}

function tell(words) {
  byId("told").textContent = words;
  byId("told").hidden = words === "";
}

const reply = await asked("run");
if (reply.ok) new Served(await reply.json()).listen();
else tell(await reply.text());
