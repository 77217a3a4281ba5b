// Small tools for drawing. Names from the data only ever become text nodes.

const SVG = "http://www.w3.org/2000/svg";

function add(parent, name, attributes = {}, text = null) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text !== null) element.textContent = text;
  parent.append(element);
  return element;
}

function addHtml(parent, name, className, text = null) {
  const element = document.createElement(name);
  if (className) element.className = className;
  if (text !== null) element.textContent = text;
  parent.append(element);
  return element;
}

function swatch(parent, group) {
  const svg = add(parent, "svg", { class: "swatch", viewBox: "0 0 28 8", width: 28, height: 8, "aria-hidden": "true" });
  add(svg, "line", {
    x1: 1, y1: 4, x2: 27, y2: 4, stroke: group.colour, "stroke-width": 3, "stroke-dasharray": group.dashes,
  });
}

const percent = (share) => `${(100 * share).toFixed(1)}%`;
const minus = (text) => text.replace("-", "\u2212");

// A score in as many digits as its range asks for.
const DIGITS = Math.max(0, Math.ceil(2 - Math.log10(HIGH - LOW) - 1e-9));
const scoreText = (value) => minus(String(Number(value.toFixed(DIGITS + 3))));

// About five round numbers over the range.
function ticks(low, high) {
  const rough = (high - low) / 5;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((one) => one >= rough * 0.999);
  const found = [];
  for (let value = Math.ceil(low / step - 1e-9) * step; value <= high + step * 1e-6; value += step) found.push(value);
  return found.map((value) => Number(value.toPrecision(12)));
}
