// Functions that add elements to a page. Names from the data only ever become text nodes.

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

const minus = (text) => text.replace("-", "\u2212");

// Round numbers over the range, about as many as asked for.
function ticks(low, high, most = 5) {
  const rough = (high - low) / most || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((one) => one >= rough * 0.999);
  const values = [];
  for (let value = Math.ceil(low / step - 1e-9) * step; value <= high + step * 1e-6; value += step) values.push(value);
  return values.map((value) => Number(value.toPrecision(12)));
}
