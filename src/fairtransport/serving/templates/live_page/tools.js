// Helpers. Names from the data only ever become text nodes.

// A line sample and a name, isolated from the writing direction of the text around it.
function addName(parent, style, text) {
  const element = addHtml(parent, "span", "name");
  const svg = add(element, "svg", { class: "swatch", viewBox: "0 0 28 8", "aria-hidden": "true", focusable: "false" });
  add(svg, "line", {
    x1: 1, y1: 4, x2: 27, y2: 4, stroke: style.colour, "stroke-width": 3, "stroke-dasharray": style.dashes || "none",
  });
  addHtml(element, "bdi", "", text).title = text;
  return element;
}

const byId = (id) => document.getElementById(id);
const isNumber = (value) => typeof value === "number";
const thousands = (value) => (isNumber(value) ? Math.round(value).toLocaleString("en") : "\u2013");
const fixed = (value, digits = 3) => (isNumber(value) ? minus(value.toFixed(digits)) : "\u2013");
const percent = (value) => (isNumber(value) ? `${(100 * value).toFixed(1)}%` : "\u2013");
const short = (value) => (isNumber(value) ? minus(String(Number(value.toPrecision(3)))) : "\u2013");

// Time of day; with its date when it is not today's.
function clock(seconds) {
  if (!isNumber(seconds)) return "\u2013";
  const then = new Date(1000 * seconds);
  const time = then.toLocaleTimeString("en-GB");
  return then.toDateString() === new Date().toDateString() ? time : `${then.toLocaleDateString("en-CA")} ${time}`;
}

// What groups are compared with: the target, or all rows where groups are compared with each other.
function reference(data) {
  if (data.target) return { name: "the target", shares: data.target };
  const known = data.histograms.map((shares, index) => [shares, data.sizes[index]]).filter(([shares, size]) => shares && size > 0);
  if (!known.length) return { name: "everyone", shares: null };
  const whole = known.reduce((sum, [, size]) => sum + size, 0);
  return { name: "everyone", shares: known[0][0].map((_, j) => known.reduce((sum, [shares, size]) => sum + (size * shares[j]) / whole, 0)) };
}

// A duration in the largest suitable unit.
function duration(seconds) {
  if (seconds < 100) return `${seconds < 10 ? Number(seconds.toFixed(1)) : Math.round(seconds)} s`;
  if (seconds < 6000) return `${Math.round(seconds / 60)} min`;
  return seconds < 180000 ? `${Math.round(seconds / 3600)} h` : `${Math.round(seconds / 86400)} days`;
}
