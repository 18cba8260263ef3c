// The page: one file, looked at as a form, as text, live, and as results.

import { Editor } from "./editor.js";
import { Form } from "./form.js";
import { Batch, Stopped, Worked } from "./lab.js";
import { Live } from "./live.js";
import { fileName, ResultsView, save } from "./results.js";
import { carriedBy, fragment } from "./share.js";

const byId = (id) => document.getElementById(id);
const EXAMPLES = JSON.parse(byId("examples").textContent);
/** More runs than this are a matter for the command line. */
const MOST_RUNS = 2000;
/** A pause in typing, in milliseconds. */
const PAUSE_MS = 250;

const editor = new Editor((text) => onText(text, "editor"));
const form = new Form((text) => onText(text, "form"));
const live = new Live((mistake) => tell(mistake.message, true));
const results = new ResultsView();

let about;
let plan;
let file = { name: "experiment.toml", text: "" };
let batch;
/** The text whose results are shown. */
let ran;
let reader;
let waiting;
let turn = 0;

/** A line for the user at the foot of the page. */
function tell(words, isMistake = false) {
  const place = byId("told");
  place.textContent = words;
  place.classList.toggle("mistake", isMistake);
  place.hidden = !words;
  clearTimeout(tell.timer);
  if (words) tell.timer = setTimeout(() => (place.hidden = true), isMistake ? 9000 : 4000);
}

function onText(text, from) {
  if (text === file.text) return;
  file = { ...file, text };
  if (from !== "editor") editor.text = text;
  if (from !== "form") form.read(text);
  byId("stale").hidden = text === ran;
  clearTimeout(waiting);
  waiting = setTimeout(() => read(), from === "form" ? 0 : PAUSE_MS);
}

/** Reads the file; what is right is watched at once. */
async function read() {
  const now = ++turn;
  const given = file;
  try {
    const found = await (await reader).call({ do: "read", ...given });
    if (now !== turn) return;
    plan = { ...found, text: given.text };
    editor.mark(null);
    const runs = plan.count === 1 ? "1 run" : `${plan.count} runs`;
    byId("size").textContent = `${runs} of ${shortSpan(plan.runs[0].duration_s)}`;
    byId("notes").replaceChildren(...plan.notes.map((note) => Object.assign(document.createElement("li"), { textContent: note })));
    byId("run").disabled = false;
    await live.watch(given, plan, about);
  } catch (error) {
    if (now !== turn) return;
    editor.mark(error);
    byId("size").textContent = "";
    byId("run").disabled = true;
  }
}

const shortSpan = (seconds) => (seconds < 120 ? `${Number(seconds.toPrecision(3))} s` : `${Number((seconds / 60).toPrecision(3))} min`);

async function run() {
  if (batch) return batch.stop();
  if (!plan) return;
  if (plan.text !== file.text) {
    clearTimeout(waiting);
    await read();
  }
  if (batch || plan.text !== file.text || byId("run").disabled) return;
  if (plan.count > MOST_RUNS) {
    return tell(`${plan.count} runs are too many for a page, which makes ${MOST_RUNS}: export the file, and use sojourn run.`, true);
  }
  // On a phone the progress and Stop are beside the description.
  if (isWide()) choose("results");
  const of = plan;
  batch = new Batch(file, plan.count);
  const began = performance.now();
  const button = byId("run");
  button.textContent = "Stop";
  byId("progress").hidden = false;
  byId("progress").value = 0;
  try {
    const found = await batch.run((share) => {
      byId("progress").value = share;
      const left = ((performance.now() - began) / 1e3) * (1 / Math.max(share, 1e-6) - 1);
      button.textContent = share > 0.05 && left > 2 ? `Stop · ${Math.ceil(left)} s left` : "Stop";
    });
    results.show(found, of, about);
    ran = of.text;
    if (document.body.dataset.view === "describe") choose("results");
    byId("stale").hidden = file.text === ran;
    const events = found.reduce((sum, result) => sum + result.summary.events, 0);
    const took = (performance.now() - began) / 1e3;
    tell(`${found.length === 1 ? "1 run" : `${found.length} runs`}, ${(events / 1e6).toFixed(1)} million events, in ${took.toFixed(1)} s.`);
  } catch (error) {
    if (error instanceof Stopped) tell("Stopped.");
    else tell(error.message, true);
  } finally {
    batch = undefined;
    button.textContent = "Run";
    byId("progress").hidden = true;
  }
}

const isWide = () => matchMedia("(min-width: 921px)").matches;
let wasPlaying = false;

/** Shows a part of the page: on a wide screen the description stays beside the others. */
function choose(view) {
  document.body.dataset.view = view;
  for (const tab of document.querySelectorAll("[data-shows]")) {
    tab.setAttribute("aria-selected", String(tab.dataset.shows === view));
  }
  // What is not on the screen need not go on.
  if (view === "live" && wasPlaying) live.play(true);
  if (view === "live") wasPlaying = false;
  else if (live.isPlaying && (view === "results" || !isWide())) {
    wasPlaying = true;
    live.play(false);
  }
  live.draw();
}

function look(as) {
  document.body.dataset.look = as;
  for (const tab of document.querySelectorAll("[data-looks]")) {
    tab.setAttribute("aria-selected", String(tab.dataset.looks === as));
  }
  editor.paint();
}

/** Opens a file; `from` has the page that it is from, if it is of one. */
function open(name, text, from = known(text)) {
  const { about: title, page } = from ?? {};
  const sheet = byId("sheet");
  sheet.hidden = !page;
  Object.assign(sheet, { textContent: title, href: page });
  file = { name };
  onText(text, "page");
}

/** The example with this text. */
const known = (text) => EXAMPLES.find((one) => one.text === text);

function offerExamples() {
  const groups = {};
  for (const { group: label, name, title } of EXAMPLES) {
    groups[label] ??= Object.assign(document.createElement("optgroup"), { label });
    groups[label].append(new Option(title, name));
  }
  byId("example").append(...Object.values(groups));
}

async function share() {
  const hash = await fragment(file.text);
  history.replaceState(null, "", hash);
  try {
    await navigator.clipboard.writeText(location.href);
    tell("The link is on the clipboard. It carries the file itself.");
  } catch {
    tell("The address of this page is now the link: copy it from the address bar.");
  }
}

function theme(name) {
  document.documentElement.dataset.theme = name;
  byId("theme").textContent = name === "dark" ? "Light" : "Dark";
  live.restyle();
  results.restyle();
}

/** Moves between tabs with the arrow keys, as tabs do. */
function walkTabs(event) {
  const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (!step) return;
  const tabs = [...event.currentTarget.querySelectorAll('[role="tab"]')].filter((tab) => tab.offsetParent);
  const next = tabs[(tabs.indexOf(document.activeElement) + step + tabs.length) % tabs.length];
  next.focus();
  next.click();
}

function onKey(event) {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
    event.preventDefault();
    run();
  } else if (event.key === "Escape" && batch) batch.stop();
  const isWriting = /^(INPUT|TEXTAREA|SELECT|BUTTON|SUMMARY)$/.test(event.target.tagName);
  if (isWriting || event.ctrlKey || event.metaKey || event.altKey) return;
  const keys = {
    " ": () => live.play(!live.isPlaying),
    ".": () => live.stepOnce(),
    "+": () => live.pace(Math.min(Number(byId("speed").value) + 1, Number(byId("speed").max))),
    "-": () => live.pace(Math.max(Number(byId("speed").value) - 1, 0)),
    l: () => choose("live"),
    r: () => choose("results"),
  };
  if (keys[event.key]) {
    event.preventDefault();
    keys[event.key]();
  }
}

async function begin() {
  const prefers = (query) => matchMedia(query).matches;
  theme(prefers("(prefers-color-scheme: dark)") ? "dark" : "light");
  byId("theme").addEventListener("click", () => theme(document.documentElement.dataset.theme === "dark" ? "light" : "dark"));
  byId("run").addEventListener("click", run);
  byId("share").addEventListener("click", share);
  byId("export").addEventListener("click", () => save(`${fileName(file.name.replace(/\.toml$/, ""))}.toml`, file.text, "application/toml"));
  byId("import").addEventListener("change", async (event) => {
    const [chosen] = event.target.files;
    if (chosen) open(chosen.name, await chosen.text());
    event.target.value = "";
  });
  offerExamples();
  byId("example").addEventListener("change", (event) => {
    const chosen = EXAMPLES.find(({ name }) => name === event.target.value);
    if (chosen) open(`${chosen.name}.toml`, chosen.text, chosen);
    event.target.value = "";
  });
  for (const tab of document.querySelectorAll("[data-shows]")) tab.addEventListener("click", () => choose(tab.dataset.shows));
  for (const tab of document.querySelectorAll("[data-looks]")) tab.addEventListener("click", () => look(tab.dataset.looks));
  for (const list of document.querySelectorAll('[role="tablist"]')) list.addEventListener("keydown", walkTabs);
  document.addEventListener("keydown", onKey);
  addEventListener("hashchange", openLinked);
  choose("live");
  look("form");

  reader = Worked.create();
  try {
    about = await (await reader).call({ do: "about" });
  } catch (error) {
    return tell(`The simulator could not be started: ${error.message}`, true);
  }
  editor.about = about;
  form.learn(about);
  if (!(await openLinked())) open("first.toml", EXAMPLES[0].text);
  if (!prefers("(prefers-reduced-motion: reduce)")) live.play(true);
}

async function openLinked() {
  try {
    const text = await carriedBy(location.hash);
    if (text === null) return false;
    open("shared.toml", text);
    return true;
  } catch (error) {
    tell(error.message, true);
    return false;
  }
}

begin();
