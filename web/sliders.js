// Sliders for what may change while a run goes on: the rates of links, the limit of the queue, the discipline's parameters.

const byId = (id) => document.getElementById(id);
/** The units of a resolved experiment, those of one quantity together. */
const SCALES = [
  { "bit/s": 1, "kbit/s": 1e3, "Mbit/s": 1e6, "Gbit/s": 1e9 },
  { ns: 1e-9, us: 1e-6, ms: 1e-3, s: 1 },
  { B: 1, kB: 1e3, MB: 1e6 },
  ...["packets", "packet", ""].map((unit) => ({ [unit]: 1 })),
];
const UNITS = Object.assign({}, ...SCALES);
/** A slider's steps, over a factor of this to both sides. */
const STEPS = 200;
const FACTOR = 20;
const QUANTITY = /^(\d+\.?\d*|\.\d+)\s*([^\s\d]*)$/;

/** A value and its unit, from text such as "5 ms"; null if it is none. */
function quantity(text) {
  const parts = String(text).trim().match(QUANTITY);
  return parts && parts[2] in UNITS ? { value: Number(parts[1]), unit: parts[2] } : null;
}

/** A quantity as text, in the unit in which it reads best. */
function readable(value, unit) {
  const units = Object.keys(SCALES.find((scale) => unit in scale));
  const base = value * UNITS[unit];
  const best = units.findLast((known) => base >= UNITS[known]) ?? units[0];
  return `${Number((base / UNITS[best]).toPrecision(6))} ${best}`.trim();
}

export class Sliders {
  constructor(onSet) {
    this.onSet = onSet;
    this.rates = new Map();
  }

  /** Shows those of a run. */
  show(run, about) {
    this.rates = new Map();
    const place = byId("sliders");
    place.replaceChildren();
    const links = new Map(run.queues.filter((queue) => !queue.wifi).map((queue) => [queue.key, queue]));
    const experiment = run.settings ?? {};
    for (const [key, queue] of links) {
      const given = linkOf(experiment, queue)?.rate ?? "";
      const steps = (Array.isArray(given) ? given : [["0 s", given]]).map((step) => step.map(quantity));
      const rate = steps[0][1];
      if (!rate) continue;
      this.rates.set(key, steps.map((step) => step.map(({ value, unit }) => value * UNITS[unit])));
      place.append(
        this.slider(links.size > 1 && key !== "link" ? `${key.replace(/^link\./, "")} rate` : "link rate", rate, (text) => {
          this.setRate(key, text);
          this.onSet(`${key}.rate`, text);
        }),
      );
    }
    const compared = run.queues.find((queue) => queue.compared && !queue.wifi);
    if (!compared) return;
    const used = experiment.queue?.[0] ?? {};
    const limit = quantity(used.limit ?? linkOf(experiment, compared)?.buffer) ?? { value: 1000, unit: "packets" };
    place.append(this.slider("buffer", limit, (text) => this.onSet("queue.limit", text)));
    const keys = about.disciplines.find((known) => known.name === compared.aqm)?.keys ?? [];
    for (const key of keys) {
      // What a discipline does not use has no value here.
      const value = quantity(used[key.name]);
      if (value?.value > 0 && this.isSlid(key)) {
        const bound = /from 0 to 1/.test(key.accepts) ? 1 : Infinity;
        place.append(this.slider(key.name, { ...value, bound }, (text) => this.onSet(`queue.${key.name}`, text), key.summary));
      }
    }
  }

  /** Amounts of data and memory limits say little on a screen. */
  isSlid(key) {
    return /a time like|a number|packets/.test(key.accepts) && key.name !== "tupdate";
  }

  /** The rate of a link was set, here or by another. */
  setRate(key, text) {
    const rate = quantity(text);
    if (rate) this.rates.set(key, [[0, rate.value * UNITS[rate.unit]]]);
  }

  /** The rate of a queue's link in bit/s at an instant; Wi-Fi and traces have none. */
  rateOf(queue, now) {
    return this.rates.get(queue?.key)?.findLast(([from]) => from <= now)?.[1];
  }

  slider(name, start, onMove, words = "") {
    const label = document.createElement("label");
    label.className = "slider";
    label.title = words;
    const head = document.createElement("span");
    const value = document.createElement("output");
    head.append(name, value);
    const input = Object.assign(document.createElement("input"), { type: "range", min: -STEPS, max: STEPS, value: 0 });
    input.dataset.key = name;
    const text = () => {
      if (input.value === "0") return readable(start.value, start.unit);
      const moved = Math.min(start.value * FACTOR ** (input.value / STEPS), start.bound ?? Infinity);
      const rounded = Number(moved.toPrecision(2));
      return readable(start.unit.startsWith("packet") ? Math.max(1, Math.round(rounded)) : rounded, start.unit);
    };
    const show = () => {
      value.textContent = text();
      input.setAttribute("aria-valuetext", text());
    };
    input.addEventListener("input", () => {
      show();
      onMove(text());
    });
    // Twice: back to the file's value.
    input.addEventListener("dblclick", () => {
      input.value = 0;
      input.dispatchEvent(new Event("input"));
    });
    show();
    label.append(head, input);
    return label;
  }
}

/** The link of a queue in a resolved experiment, in its direction. */
function linkOf({ link }, { link: name, key }) {
  const found = Array.isArray(link) ? link.find((known) => known.name === name) : link;
  return key.endsWith(".up") ? found?.up : found;
}
