// Numbers and elements for people.

const TIME_UNITS = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]];
const SIZE_UNITS = [[2 ** 40, "TiB"], [2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"], [1, "B"]];

function withUnit(value, units) {
  const [size, unit] = units.find(([each]) => Math.abs(value) >= each) ?? units.at(-1);
  const shown = value / size;
  const digits = Math.abs(shown) >= 100 || size === 1 ? 0 : Math.abs(shown) >= 10 ? 1 : 2;
  return `${shown.toFixed(digits)} ${unit}`;
}

const duration = (nanoseconds) => withUnit(nanoseconds, TIME_UNITS);
const size = (bytes) => withUnit(bytes, SIZE_UNITS);
const count = (number) => number.toLocaleString("en");

// A time on an axis whose lines are `step` nanoseconds apart.
function axisTime(nanoseconds, step) {
  if (nanoseconds === 0) return "0";
  const [unitSize, unit] = TIME_UNITS.find(([each]) => nanoseconds >= each) ?? TIME_UNITS.at(-1);
  const digits = Math.max(0, Math.ceil(-Math.log10(step / unitSize) - 1e-9));
  return `${(nanoseconds / unitSize).toFixed(digits)} ${unit}`;
}

// A step of 1, 2 or 5 times a power of ten that is at least `least`.
function roundStep(least) {
  const power = 10 ** Math.floor(Math.log10(least));
  return power * [1, 2, 5, 10].find((factor) => power * factor >= least * (1 - 1e-9));
}

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

// Degrees on the circle of colours.
const MEMORY_HUES = { parameter: 215, gradient: 275, "optimizer state": 320, input: 165,
  activation: 30, temporary: 55, other: 215 };

class Theme {
  constructor(changed) {
    this.dark = matchMedia("(prefers-color-scheme: dark)");
    this.dark.addEventListener("change", () => { this.read(); changed(); });
    this.read();
  }

  read() {
    const style = getComputedStyle(document.documentElement);
    for (const name of ["surface", "text", "muted", "line", "accent", "event-text", "shade"]) {
      this[name.replace("-t", "T")] = style.getPropertyValue(`--${name}`).trim();
    }
  }

  // Names have hues that are far apart; a call's work on a device has the hue of the call.
  event(nameNumber, kind) {
    const grey = kind === "range" || kind === "step" || kind === "backward";
    const hue = grey ? 220 : kind === "data" ? 40 : (25 + nameNumber * 137.508) % 360;
    const saturation = grey ? 16 : this.dark.matches ? 36 : 58;
    const shift = kind === "step" ? 4 : kind === "backward" ? -3 : 0;
    return `hsl(${hue} ${saturation}% ${(this.dark.matches ? 37 : 81) + shift}%)`;
  }

  memory(category) {
    const grey = category === "other";
    const light = this.dark.matches ? 52 : 66;
    return `hsl(${MEMORY_HUES[category]} ${grey ? 8 : 48}% ${light}%)`;
  }
}
