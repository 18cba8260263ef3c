// The editor of the experiment file: a text area with colours behind it, numbers beside it, completions below the cursor.

import { completions, described } from "./complete.js";
import { coloured } from "./toml.js";

const byId = (id) => document.getElementById(id);

export class Editor {
  /** `onChange` hears the text after every change. */
  constructor(onChange) {
    this.onChange = onChange;
    this.about = null;
    this.mistake = null;
    this.area = byId("text");
    this.colours = byId("colours");
    this.numbers = byId("numbers");
    this.list = byId("offers");
    this.hint = byId("hint");
    this.offers = [];
    this.chosen = 0;
    this.area.addEventListener("input", () => this.changed(true));
    this.area.addEventListener("keydown", (event) => this.onKey(event));
    this.area.addEventListener("scroll", () => this.follow());
    this.area.addEventListener("blur", () => this.close());
    for (const name of ["click", "keyup"]) this.area.addEventListener(name, () => this.tell());
    this.list.addEventListener("pointerdown", (event) => {
      event.preventDefault();
      const item = event.target.closest("li");
      if (item) this.accept(Number(item.dataset.index));
    });
  }

  get text() {
    return this.area.value;
  }

  set text(text) {
    this.area.value = text;
    this.close();
    this.changed(false);
  }

  changed(isTyped) {
    this.paint();
    if (isTyped) this.offer(false);
    this.onChange(this.text);
  }

  paint() {
    this.colours.innerHTML = `${coloured(this.text)}\n`;
    const lines = this.text.split("\n").length;
    const at = this.mistake?.line;
    this.numbers.innerHTML = Array.from({ length: lines }, (_, index) =>
      index + 1 === at ? `<b>${at}</b>` : `<i>${index + 1}</i>`,
    ).join("");
    const line = byId("wrong");
    line.hidden = !at || at > lines;
    if (at) line.style.setProperty("--line", at - 1);
    this.area.setAttribute("aria-invalid", String(Boolean(this.mistake)));
    this.follow();
  }

  /** Shows a mistake `{ message, line, column }`, or none. */
  mark(mistake) {
    this.mistake = mistake;
    const place = byId("mistake");
    place.hidden = !mistake;
    if (mistake) {
      place.querySelector("span").textContent = mistake.message;
      const go = place.querySelector("button");
      go.hidden = !mistake.line;
      go.textContent = `Line ${mistake.line}`;
      go.onclick = () => this.goTo(mistake);
    }
    this.paint();
  }

  goTo({ line, column }) {
    const before = this.text.split("\n").slice(0, line - 1);
    const at = before.reduce((sum, text) => sum + text.length + 1, 0);
    // Columns count bytes.
    const bytes = new TextEncoder().encode(this.text.split("\n")[line - 1] ?? "").slice(0, (column ?? 1) - 1);
    const from = at + new TextDecoder().decode(bytes).length;
    this.area.focus();
    this.area.setSelectionRange(from, from);
    const height = parseFloat(getComputedStyle(this.area).lineHeight);
    this.area.scrollTop = Math.max(0, (line - 4) * height);
  }

  follow() {
    const { scrollTop, scrollLeft } = this.area;
    this.colours.style.transform = `translate(${-scrollLeft}px, ${-scrollTop}px)`;
    this.numbers.style.transform = `translateY(${-scrollTop}px)`;
    byId("wrong").style.setProperty("--scroll", `${-scrollTop}px`);
  }

  tell() {
    if (this.about) this.hint.textContent = described(this.about, this.text, this.area.selectionStart);
  }

  onKey(event) {
    const isOpen = !this.list.hidden;
    if (event.key === " " && event.ctrlKey) {
      event.preventDefault();
      this.offer(true);
    } else if (isOpen && ["ArrowDown", "ArrowUp"].includes(event.key)) {
      event.preventDefault();
      const step = event.key === "ArrowDown" ? 1 : -1;
      this.choose((this.chosen + step + this.offers.length) % this.offers.length);
    } else if (isOpen && (event.key === "Tab" || event.key === "Enter") && !event.ctrlKey) {
      event.preventDefault();
      this.accept(this.chosen);
    } else if (isOpen && event.key === "Escape") {
      event.preventDefault();
      event.stopPropagation();
      this.close();
    }
  }

  offer(isAsked) {
    this.close();
    if (!this.about || this.area.selectionStart !== this.area.selectionEnd) return;
    const position = this.area.selectionStart;
    const { from, offers } = completions(this.about, this.text, position);
    // While typing, a list appears only once there is something to complete.
    const typed = this.text.slice(from, position);
    const isBehindKey = /=\s*$/.test(this.text.slice(0, position).split("\n").at(-1));
    if (!offers.length || (!isAsked && !typed && !isBehindKey)) return;
    this.from = from;
    this.offers = offers;
    this.list.innerHTML = "";
    offers.forEach((offer, index) => {
      const item = document.createElement("li");
      item.id = `offer-${index}`;
      item.role = "option";
      item.dataset.index = index;
      item.append(Object.assign(document.createElement("b"), { textContent: offer.label }));
      item.append(Object.assign(document.createElement("span"), { textContent: offer.detail }));
      this.list.append(item);
    });
    this.place();
    this.list.hidden = false;
    this.area.setAttribute("aria-expanded", "true");
    this.choose(0);
  }

  /** Puts the list below the cursor, or above it where there is no room. */
  place() {
    const before = this.text.slice(0, this.from).split("\n");
    const style = getComputedStyle(this.area);
    const line = parseFloat(style.lineHeight);
    const character = parseFloat(style.fontSize) * 0.602;
    const top = before.length * line + parseFloat(style.paddingTop) - this.area.scrollTop;
    const left = parseFloat(style.paddingLeft) + before.at(-1).length * character - this.area.scrollLeft;
    const box = this.area.parentElement;
    this.list.style.left = `${this.area.offsetLeft + Math.max(0, Math.min(left, this.area.clientWidth - 280))}px`;
    const isLow = top > box.clientHeight - 120;
    this.list.style.top = isLow ? "auto" : `${top + 2}px`;
    this.list.style.bottom = isLow ? `${box.clientHeight - top + line + 2}px` : "auto";
  }

  choose(index) {
    this.chosen = index;
    [...this.list.children].forEach((item, number) => {
      item.setAttribute("aria-selected", String(number === index));
    });
    this.list.children[index]?.scrollIntoView({ block: "nearest" });
    this.area.setAttribute("aria-activedescendant", `offer-${index}`);
  }

  accept(index) {
    const offer = this.offers[index];
    const from = this.from;
    this.close();
    this.area.setSelectionRange(from, this.area.selectionStart);
    this.area.setRangeText(offer.text, from, this.area.selectionEnd, "end");
    this.changed(false);
    this.area.focus();
    if (/[=] $/.test(offer.text)) this.offer(true);
  }

  close() {
    this.list.hidden = true;
    this.offers = [];
    this.area.setAttribute("aria-expanded", "false");
    this.area.removeAttribute("aria-activedescendant");
  }
}
