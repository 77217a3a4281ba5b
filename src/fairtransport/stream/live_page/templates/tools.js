// Small tools. Names from the data only ever become text nodes.

const SVG = "http://www.w3.org/2000/svg";

function add(parent, name, attributes = {}, text = null) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text !== null) element.textContent = text;
  parent.append(element);
  return element;
}

function addHtml(parent, name, className = "", text = null) {
  const element = document.createElement(name);
  if (className) element.className = className;
  if (text !== null) element.textContent = text;
  parent.append(element);
  return element;
}

// A line sample and a name, which keeps its direction of writing to itself.
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
const minus = (text) => text.replace("-", "\u2212");
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

// What groups are held against: the target, or everyone, by size, where groups are moved to each other.
function yardstick(data) {
  if (data.target) return { name: "the target", shares: data.target };
  const known = data.histograms.map((shares, place) => [shares, data.sizes[place]]).filter(([shares, size]) => shares && size > 0);
  if (!known.length) return { name: "everyone", shares: null };
  const whole = known.reduce((sum, [, size]) => sum + size, 0);
  return { name: "everyone", shares: known[0][0].map((_, j) => known.reduce((sum, [shares, size]) => sum + (size * shares[j]) / whole, 0)) };
}

// A number of seconds as people say it.
function duration(seconds) {
  if (seconds < 100) return `${seconds < 10 ? Number(seconds.toFixed(1)) : Math.round(seconds)} s`;
  if (seconds < 6000) return `${Math.round(seconds / 60)} min`;
  return seconds < 180000 ? `${Math.round(seconds / 3600)} h` : `${Math.round(seconds / 86400)} days`;
}

// About so many round numbers over the range.
function ticks(low, high, most = 5) {
  const rough = (high - low) / most || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((one) => one >= rough * 0.999);
  const found = [];
  for (let value = Math.ceil(low / step - 1e-9) * step; value <= high + step * 1e-6; value += step) found.push(value);
  return found.map((value) => Number(value.toPrecision(12)));
}
