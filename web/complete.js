// Completions in an experiment file, from its JSON schema.

import { placeAt, valueIn } from "./toml.js";

/** Longest list that is offered. */
const MOST_OFFERED = 60;

/** The schemas that a schema stands for. */
function forms(schema) {
  if (!schema || typeof schema !== "object") return [];
  const several = schema.anyOf ?? schema.oneOf;
  return several ? several.flatMap(forms) : [schema];
}

/** The schemas of the tables at a path, narrowed by the kinds that the table names. */
function schemasAt(schema, table) {
  let found = forms(schema);
  for (const part of table.path ? table.path.split(".") : []) {
    const below = found.flatMap((form) => forms(form.properties?.[part] ?? form.additionalProperties));
    found = below.flatMap((form) => (table.isArray || form.type === "array" ? forms(form.items ?? form) : [form]));
  }
  const objects = found.filter((form) => form.properties);
  const chosen = objects.filter((form) =>
    ["aqm", "kind"].every((key) => {
      const given = valueIn(table, key);
      const only = form.properties[key];
      return given === undefined || only === undefined || choices(only).includes(given);
    }),
  );
  return chosen.length ? chosen : objects;
}

/** The values that a schema lists. */
function choices(schema) {
  return forms(schema).flatMap((form) => {
    if ("const" in form) return [form.const];
    if (form.enum) return form.enum;
    return form.type === "boolean" ? [true, false] : [];
  });
}

const merged = (schemas) => {
  const all = new Map();
  for (const schema of schemas) {
    for (const [key, value] of Object.entries(schema.properties ?? {})) if (!all.has(key)) all.set(key, value);
  }
  return all;
};

const shown = (value) => (typeof value === "string" ? JSON.stringify(value) : String(value));

/** Offers at a position: `{ from, offers: [{ text, label, detail }] }`; `from` is where the completed word begins. */
export function completions(about, text, position) {
  const place = placeAt(text, position);
  const none = { from: position, offers: [] };
  if (place.isComment || !place.table) return none;
  if (place.header) return headers(about, place, position);
  if (place.key === null) {
    if (/[^A-Za-z0-9_-]/.test(place.typed)) return none;
    const given = new Set(place.table.pairs.filter((pair) => pair.line !== place.number).map((pair) => pair.key));
    const known = [...merged(schemasAt(about.schema, place.table))];
    const offers = known
      .filter(([key]) => !given.has(key) && key.startsWith(place.typed) && key !== place.typed)
      .map(([key, schema]) => ({ text: `${key} = `, label: key, detail: schema.description ?? "" }));
    if (!place.table.path) offers.push(...headerOffers(about, place.typed).map((offer) => ({ ...offer, text: offer.whole })));
    return { from: position - place.typed.length, offers: offers.slice(0, MOST_OFFERED) };
  }
  const all = schemasAt(about.schema, place.key === "aqm" || place.key === "kind" ? { ...place.table, pairs: [] } : place.table);
  const values = all.flatMap((form) => choices(form.properties[place.key] ?? {}));
  const schema = all.map((form) => form.properties[place.key]).find(Boolean);
  if (schema && !values.length && place.typed === "" && schema.default !== undefined) values.push(schema.default);
  const words = new Map([
    ...about.disciplines.map((known) => [known.name, known.summary]),
    ...about.congestion_controls.map((known) => [known.name, known.summary]),
    ...about.traffic.map((known) => [known.name, known.summary]),
  ]);
  const offers = [...new Set(values)]
    .filter((value) => shown(value).startsWith(place.typed) || String(value).startsWith(place.typed))
    .filter((value) => shown(value) !== place.typed)
    .map((value) => ({ text: shown(value), label: String(value), detail: words.get(value) ?? schema?.description ?? "" }));
  return { from: position - place.typed.length, offers: offers.slice(0, MOST_OFFERED) };
}

function headerOffers(about, typed) {
  return Object.entries(about.schema.properties)
    .filter(([name]) => name.startsWith(typed))
    .map(([name, schema]) => {
      const isArray = forms(schema).every((form) => form.type === "array");
      const [open, close] = isArray ? ["[[", "]]"] : ["[", "]"];
      return { whole: `${open}${name}${close}\n`, label: `${open}${name}${close}`, detail: schema.description ?? "" };
    });
}

function headers(about, { header }, position) {
  const offers = headerOffers(about, header.typed).map((offer) => ({
    ...offer,
    text: offer.label.replace(/^\[+/, ""),
  }));
  return { from: position - header.typed.length, offers };
}

/** What the schema says of the key at a position; empty if nothing. */
export function described(about, text, position) {
  const place = placeAt(text, position);
  if (!place.table) return "";
  const pair = place.table.pairs.find((known) => known.line === place.number);
  const key = place.key ?? pair?.key;
  if (!key) return "";
  const schema = schemasAt(about.schema, place.table).map((form) => form.properties[key]).find(Boolean);
  if (!schema) return "";
  const given = valueIn(place.table, key);
  const named = { aqm: about.disciplines, kind: about.traffic, tcp: about.congestion_controls }[key];
  const meant = named?.find(({ name }) => name === given);
  if (meant) return `${given}: ${meant.summary}`;
  const standard = schema.default === undefined ? "" : ` Default: ${shown(schema.default)}.`;
  const says = schema.description ?? "";
  return says || standard ? `${key}: ${says}${says.includes("Default:") ? "" : standard}` : "";
}
