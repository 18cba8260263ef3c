// Colours of flows and arms: told apart also without red and green (after Okabe and Ito), on light and dark ground.

const LIGHT = ["#0072b2", "#e08a00", "#009e73", "#cc5fa0", "#56b4e9", "#d55e00", "#8a7a00", "#6a5acd", "#7f7f7f", "#00a0a0"];
const DARK = ["#4aa8e8", "#ffb13b", "#2fd0a0", "#f08cc8", "#9bd8ff", "#ff8a4a", "#e6d84a", "#a99bff", "#b0b0b0", "#4fdede"];

export const isDark = () => document.documentElement.dataset.theme === "dark";

export const colour = (index) => (isDark() ? DARK : LIGHT)[index % LIGHT.length];

let known = {};

/** A value of the page's style. Looking it up costs more than drawing with it. */
export const styled = (name) =>
  (known[name] ??= getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim());

/** The style has changed. */
export const restyle = () => (known = {});

/** Collects rectangles by colour: a canvas fills many at once faster than one after the other. */
export class Rectangles {
  paths = new Map();

  add(fill, x, y, wide, tall) {
    if (!this.paths.has(fill)) this.paths.set(fill, new Path2D());
    this.paths.get(fill).rect(x, y, wide, tall);
  }

  fill(context) {
    for (const [fill, path] of this.paths) {
      context.fillStyle = fill;
      context.fill(path);
    }
  }
}

/** Fits a canvas to its place on the screen; returns its context and its size in the units of the style. */
export function fitted(canvas) {
  const scale = Math.min(devicePixelRatio || 1, 2);
  const { clientWidth: width, clientHeight: height } = canvas;
  if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(height * scale)) {
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
  }
  const context = canvas.getContext("2d");
  context.setTransform(scale, 0, 0, scale, 0, 0);
  context.clearRect(0, 0, width, height);
  return { context, width, height };
}

/** A round number that is at least `value`. */
export function nice(value, rounds = [1, 1.5, 2, 3, 4, 5, 6, 8, 10]) {
  const power = 10 ** Math.floor(Math.log10(Math.max(value, 1e-12)));
  return rounds.map((step) => step * power).find((step) => step >= value * 0.9999);
}

/** Marks of an axis from `bottom` to `top`, some four. */
export function marks(top, bottom = 0) {
  const step = nice((top - bottom) / 4, [1, 2, 2.5, 5, 10]);
  return Array.from({ length: Math.floor((top - bottom) / step + 1e-9) + 1 }, (_, index) => bottom + index * step);
}

export const shortly = (value) => String(Number(value.toPrecision(3)));
