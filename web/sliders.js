// Sliders for what may change while a run goes on: the rates of links, the limit of the queue, the discipline's parameters.

const byId = (id) => document.getElementById(id);
const UNITS = {
  "bit/s": 1, "kbit/s": 1e3, "Mbit/s": 1e6, "Gbit/s": 1e9,
  ns: 1e-9, us: 1e-6, "µs": 1e-6, ms: 1e-3, s: 1, min: 60,
  packets: 1, packet: 1, B: 1, bytes: 1, kB: 1e3, MB: 1e6, "%": 0.01, "": 1,
};
/** A slider's steps, over a factor of this to both sides. */
const STEPS = 200;
const FACTOR = 20;
const QUANTITY = /^(\d+\.?\d*|\.\d+)\s*([^\s\d]*)$/;

/** A value and its unit, from text such as "5 ms"; null if it is none. */
function quantity(text) {
  const parts = String(text).trim().match(QUANTITY);
  return parts && parts[2] in UNITS ? { value: Number(parts[1]), unit: parts[2] } : null;
}

const shortly = (value) => String(Number(value.toPrecision(value < 1 ? 2 : 3)));

/** A quantity in the unit in which it reads best. */
function readable(value, unit) {
  const scale = { "bit/s": ["bit/s", "kbit/s", "Mbit/s", "Gbit/s"], s: ["us", "ms", "s"], B: ["B", "kB", "MB"] };
  const family = Object.values(scale).find((units) => units.includes(unit));
  if (!family) return { value, unit };
  const base = value * UNITS[unit];
  const best = family.findLast((known) => base / UNITS[known] >= 1) ?? family[0];
  return { value: base / UNITS[best], unit: best };
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
      const rate = quantity(rateIn(experiment, key, queue));
      if (!rate) continue;
      this.rates.set(key, rate.value * UNITS[rate.unit]);
      place.append(
        this.slider(links.size > 1 && key !== "link" ? `${key.replace(/^link\./, "")} rate` : "link rate", rate, (text, value) => {
          this.rates.set(key, value);
          this.onSet(`${key}.rate`, text);
        }),
      );
    }
    const compared = run.queues.find((queue) => queue.compared && !queue.wifi);
    if (!compared) return;
    const limit = quantity(limitIn(experiment, compared)) ?? { value: 1000, unit: "packets" };
    if (["packets", "packet", "B", "kB", "MB", "bytes"].includes(limit.unit)) {
      const whole = { ...limit, whole: limit.unit.startsWith("packet") };
      place.append(this.slider("buffer", whole, (text) => this.onSet("queue.limit", text)));
    }
    const keys = about.disciplines.find((known) => known.name === compared.aqm)?.keys ?? [];
    const used = experiment.queue?.[0] ?? {};
    for (const key of keys) {
      const given = used[key.name] ?? key.default.split(";")[0];
      const value = quantity(given);
      if (value && value.value > 0 && this.isSlid(key)) {
        const isNumber = typeof used[key.name] === "number" || value.unit === "";
        const whole = /whole number|packets/.test(key.accepts);
        const bound = /from 0 to 1/.test(key.accepts) ? 1 : Infinity;
        place.append(
          this.slider(key.name, { ...value, whole, bound }, (text) => this.onSet(`queue.${key.name}`, isNumber ? text.trim() : text), key.summary),
        );
      }
    }
  }

  /** Amounts of data and memory limits say little on a screen. */
  isSlid(key) {
    return /a time like|a number|packets/.test(key.accepts) && !["tupdate", "t_shift", "drop_batch", "burst"].includes(key.name);
  }

  /** Another has set the rate of a link. */
  setRate(key, text) {
    const rate = quantity(text);
    if (rate) this.rates.set(key, rate.value * UNITS[rate.unit]);
  }

  rateOf(queue) {
    return this.rates.get(queue?.key);
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
    const at = () => {
      const raw = Math.min(start.value * FACTOR ** (input.value / STEPS), start.bound ?? Infinity);
      const rounded = Number(raw.toPrecision(2));
      return start.whole ? Math.max(1, Math.round(rounded)) : rounded;
    };
    const text = () => {
      const shown = start.whole ? { value: at(), unit: start.unit } : readable(at(), start.unit);
      return `${shortly(shown.value)}${shown.unit === "%" ? " %" : shown.unit ? ` ${shown.unit}` : ""}`;
    };
    const show = () => {
      value.textContent = text();
      input.setAttribute("aria-valuetext", text());
    };
    input.addEventListener("input", () => {
      show();
      onMove(text(), at() * UNITS[start.unit]);
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

/** The rate of a link in a resolved experiment; a schedule begins with its first. */
function rateIn(experiment, key, queue) {
  const parts = key.split(".");
  let found = Array.isArray(experiment.link)
    ? experiment.link.find((link) => link.name === queue.link)
    : experiment.link;
  if (parts.at(-1) === "up") found = found?.up;
  const rate = found?.rate;
  return Array.isArray(rate) ? rate[0]?.[1] : rate;
}

function limitIn(experiment, queue) {
  const link = Array.isArray(experiment.link)
    ? experiment.link.find((known) => known.name === queue.link)
    : experiment.link;
  return experiment.queue?.[0]?.limit ?? (queue.direction === "up" ? link?.up?.buffer : link?.buffer) ?? "";
}
