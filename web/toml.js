// What the page needs to know of TOML: its colours, where a position is in the file, and single values replaced.

const TOKEN =
  /(#.*)|("""[\s\S]*?"""|"(?:\\.|[^"\\\n])*"?|'[^'\n]*'?)|^([ \t]*\[\[?[^\]\n]*\]?\]?)|\b(true|false)\b|((?<![\w.-])[-+]?\d[\d_.eE+-]*)|([A-Za-z0-9_.-]+|"[^"\n]*")(?=[ \t]*=)/gm;
const KINDS = [undefined, "comment", "text", "table", "flag", "number", "key"];

const escaped = (text) => text.replace(/[&<>]/g, (sign) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;" })[sign]);

/** A text as HTML with classes for its parts. */
export function coloured(text) {
  let html = "";
  let done = 0;
  for (const found of text.matchAll(TOKEN)) {
    const kind = KINDS[found.findIndex((part, index) => index > 0 && part !== undefined)];
    // A quoted key is a key, not a value.
    const isKey = kind === "text" && /^[ \t]*=[^=]/.test(text.slice(found.index + found[0].length));
    html += escaped(text.slice(done, found.index));
    html += `<span class="toml-${isKey ? "key" : kind}">${escaped(found[0])}</span>`;
    done = found.index + found[0].length;
  }
  return html + escaped(text.slice(done));
}

const HEADER = /^\s*(\[\[?)\s*([^\]]+?)\s*\]\]?\s*(?:#.*)?$/;
const PAIR = /^\s*("[^"]*"|[A-Za-z0-9_.-]+)\s*=\s*(.*)$/;

/** A value as it stands on a line, without the comment behind it. */
function valueOf(rest) {
  const quoted = rest.match(/^("(?:\\.|[^"\\])*"|'[^']*')/);
  if (quoted) return quoted[1];
  let inside = null;
  for (let at = 0; at < rest.length; at++) {
    const sign = rest[at];
    if (inside) inside = sign === inside ? null : inside;
    else if (sign === '"' || sign === "'") inside = sign;
    else if (sign === "#") return rest.slice(0, at).trimEnd();
  }
  return rest.trimEnd();
}

/** The tables of a file with their lines: `{ path, isArray, from, to, pairs }`; the first is that above all headers. */
export function tables(text) {
  const lines = text.split("\n");
  const found = [{ path: "", isArray: false, from: 0, to: lines.length, pairs: [] }];
  lines.forEach((line, number) => {
    const header = line.match(HEADER);
    if (header) {
      found.at(-1).to = number;
      found.push({ path: header[2], isArray: header[1] === "[[", from: number, to: lines.length, pairs: [] });
      return;
    }
    const pair = line.match(PAIR);
    if (pair) found.at(-1).pairs.push({ key: pair[1].replaceAll('"', ""), value: valueOf(pair[2]), line: number });
  });
  return found;
}

/** The value of a key of a table as text, without quotes; undefined if it is not there. */
export function valueIn(table, key) {
  const value = table?.pairs.find((pair) => pair.key === key)?.value;
  return value?.replace(/^"(.*)"$/, "$1");
}

/** A value as it is written: numbers and flags bare, all else quoted. */
export function written(value) {
  if (typeof value !== "string") return String(value);
  return /^(true|false|[-+]?\d+(\.\d+)?)$/.test(value) || /^[[{]/.test(value) ? value : JSON.stringify(value);
}

/** A text with a key of a table set; a null value takes the key away. */
export function withValue(text, table, key, value) {
  const lines = text.split("\n");
  const pair = table.pairs.find((known) => known.key === key);
  if (pair && value === null) lines.splice(pair.line, 1);
  else if (pair) {
    // The value only: what is beside it, such as a comment, stays.
    const line = lines[pair.line];
    const at = line.indexOf(pair.value, line.indexOf("=") + 1);
    lines[pair.line] = line.slice(0, at) + written(value) + line.slice(at + pair.value.length);
  } else if (value !== null) {
    const last = table.pairs.at(-1)?.line ?? table.from;
    lines.splice(last + 1, 0, `${key} = ${written(value)}`);
  }
  return lines.join("\n");
}

/** A text with all tables at `path` replaced by blocks, one text each. */
export function withTables(text, path, blocks) {
  const lines = text.split("\n");
  const all = tables(text);
  const old = all.filter((table) => table.path === path);
  const at = old.length ? old[0].from : lines.length;
  const kept = [];
  lines.forEach((line, number) => {
    if (number === at) kept.push(...blocks.flatMap((block) => [...block.split("\n"), ""]));
    // Comments above the next table belong to it.
    if (!old.some((table) => number >= table.from && number < endOf(table, lines))) kept.push(line);
  });
  if (at === lines.length) kept.push("", ...blocks.flatMap((block) => [...block.split("\n"), ""]));
  return kept.join("\n").replace(/\n{3,}/g, "\n\n").replace(/\n+$/, "\n");
}

/** The text of a table, without what belongs to the next. */
export function blockOf(text, table) {
  const lines = text.split("\n");
  return lines.slice(table.from, endOf(table, lines)).join("\n").trimEnd();
}

function endOf(table, lines) {
  let end = table.to;
  while (end < lines.length && end > table.from + 1 && /^\s*#/.test(lines[end - 1])) end--;
  return end;
}

/** Where a position is: the table, the key if it is behind one, and what stands between there and the position. */
export function placeAt(text, position) {
  const before = text.slice(0, position);
  const number = before.split("\n").length - 1;
  const line = before.slice(before.lastIndexOf("\n") + 1);
  const table = tables(text).findLast((known) => known.from <= number);
  const all = tables(text).filter((known) => known.path === table.path && known.isArray);
  const pair = line.match(/^\s*("[^"]*"|[A-Za-z0-9_.-]+)\s*=\s*(.*)$/);
  const head = line.match(/^\s*\[\[?\s*([A-Za-z0-9_.-]*)$/);
  return {
    table,
    index: all.indexOf(table),
    number,
    header: head ? { typed: head[1], isArray: line.includes("[[") } : null,
    key: pair ? pair[1].replaceAll('"', "") : null,
    typed: pair ? pair[2] : line.trimStart(),
    isComment: /^[^"']*#/.test(line),
  };
}
