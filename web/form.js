// A form for the common line. It reads its values from the file and replaces them there, so that there is one description.

import { blockOf, tables, valueIn, withTables, withValue, written } from "./toml.js";

const byId = (id) => document.getElementById(id);
/** The disciplines that are offered first; the others are behind a button. */
const COMMON = ["pfifo", "codel", "fq_codel", "cake", "pie", "dualpi2", "red"];
/** What stands for a number, be it one or not, and a unit. */
const QUANTITY = /^([-+.,\d]+(?:e\d+)?|[^\s[{]+(?=\s))\s*(\D*)$/;

/** The fields: where in the file they are, and their unit if the file gives none. */
const FIELDS = {
  rate: { find: link, key: "rate", unit: "Mbit/s" },
  buffer: { find: link, key: "buffer", unit: "packets" },
  rtt: { find: flows, key: "rtt", unit: "ms" },
  flows: { find: flows, key: "flows", unit: "", otherwise: "1" },
  tcp: { find: flows, key: "tcp", unit: null, otherwise: "cubic" },
  duration: { find: experiment, key: "duration", unit: "s" },
  repeat: { find: experiment, key: "repeat", unit: "", otherwise: "1" },
};

function link(all) {
  return all.find((table) => table.path === "link" && !table.isArray);
}

function experiment(all) {
  return all.find((table) => table.path === "experiment");
}

function flows(all) {
  return all.find((table) => table.path === "traffic" && valueIn(table, "kind") === "bulk");
}

export class Form {
  /** `onChange` hears the file's text after a change of the form. */
  constructor(onChange) {
    this.onChange = onChange;
    this.text = "";
    for (const name of Object.keys(FIELDS)) {
      byId(`form-${name}`).addEventListener("change", () => this.write(name));
      byId(`form-${name}-unit`)?.addEventListener("change", () => this.write(name));
    }
    byId("form-call").addEventListener("change", (event) => this.traffic("voip", event.target.checked));
    byId("form-web").addEventListener("change", (event) => this.traffic("web", event.target.checked));
    byId("form-more").addEventListener("click", () => {
      this.isOpen = !this.isOpen;
      this.read(this.text);
    });
  }

  /** Learns the names of disciplines and congestion controls. */
  learn(about) {
    this.about = about;
    const select = byId("form-tcp");
    select.replaceChildren(
      ...about.congestion_controls.map(({ name, summary }) => Object.assign(new Option(name, name), { title: summary })),
    );
    this.read(this.text);
  }

  /** Shows the values of a file. */
  read(text) {
    this.text = text;
    const all = tables(text);
    for (const [name, field] of Object.entries(FIELDS)) this.show(name, field, all);
    const kinds = all.filter((table) => table.path === "traffic").map((table) => valueIn(table, "kind"));
    byId("form-call").checked = kinds.includes("voip");
    byId("form-web").checked = kinds.includes("web");
    const isCommon = Boolean(link(all));
    for (const id of ["form-call", "form-web"]) byId(id).disabled = !isCommon;
    byId("form-other").hidden = isCommon;
    this.queues(all);
  }

  show(name, { find, key, unit, otherwise }, all) {
    const table = find(all);
    const given = table && valueIn(table, key);
    const input = byId(`form-${name}`);
    const units = byId(`form-${name}-unit`);
    if (unit === null) {
      input.disabled = !table;
      input.value = given ?? otherwise;
      return;
    }
    const parts = (given ?? otherwise ?? "").match(QUANTITY);
    // A schedule or a trace is more than a field holds; a mistake stays to be mended.
    const isMore = /^[[{]/.test(given);
    input.disabled = !table || isMore;
    input.placeholder = !table ? "–" : isMore ? "varies" : "default";
    input.value = parts ? parts[1] : isMore ? "" : (given ?? "");
    if (!units) return;
    units.disabled = input.disabled;
    const wanted = parts?.[2].trim() || unit;
    if (![...units.options].some((option) => option.value === wanted)) units.add(new Option(wanted, wanted));
    units.value = wanted;
  }

  write(name) {
    const { find, key, unit } = FIELDS[name];
    const table = find(tables(this.text));
    const typed = byId(`form-${name}`).value.trim();
    const units = byId(`form-${name}-unit`)?.value ?? unit;
    const value = unit && typed ? `${typed} ${units}` : typed;
    this.give(withValue(this.text, table, key, value === "" ? null : value));
  }

  give(text) {
    this.read(text);
    this.onChange(text);
  }

  queues(all) {
    const place = byId("form-queues");
    place.replaceChildren();
    if (!this.about) return;
    const arms = all.filter((table) => table.path === "queue");
    const given = arms.map((table) => valueIn(table, "aqm"));
    // Written as a list, queues are no tables that could be added to.
    const disabled = valueIn(all[0], "queue") !== undefined;
    const names = this.about.disciplines.filter(
      ({ name }) => this.isOpen || COMMON.includes(name) || given.includes(name),
    );
    names.sort((a, b) => rank(a.name) - rank(b.name));
    for (const { name, summary } of names) {
      const box = Object.assign(document.createElement("input"), { type: "checkbox", checked: given.includes(name), disabled });
      box.addEventListener("change", () => this.arm(name, box.checked));
      const label = document.createElement("label");
      label.className = "chip";
      label.title = summary;
      label.append(box, name);
      place.append(label);
    }
    byId("form-more").textContent = this.isOpen ? "fewer" : `all ${this.about.disciplines.length}`;
  }

  /** Adds an arm, or takes away all arms of a discipline. The others keep their parameters. */
  arm(name, isWanted) {
    const arms = tables(this.text).filter((table) => table.path === "queue");
    const blocks = arms
      .filter((table) => isWanted || valueIn(table, "aqm") !== name)
      .map((table) => blockOf(this.text, table));
    if (isWanted) blocks.push(`[[queue]]\naqm = ${written(name)}`);
    this.give(withTables(this.text, "queue", blocks));
  }

  /** Adds a group of traffic with the RTT of the flows, or takes away all groups of the kind. */
  traffic(kind, isWanted) {
    const all = tables(this.text);
    const rtt = valueIn(flows(all) ?? { pairs: [] }, "rtt") ?? "40 ms";
    const blocks = all
      .filter((table) => table.path === "traffic" && (isWanted || valueIn(table, "kind") !== kind))
      .map((table) => blockOf(this.text, table));
    if (isWanted) blocks.push(`[[traffic]]\nkind = ${written(kind)}\nrtt = ${written(rtt)}`);
    this.give(withTables(this.text, "traffic", blocks));
  }
}

const rank = (name) => (COMMON.includes(name) ? COMMON.indexOf(name) : COMMON.length);
