// Line samples, and numbers as the page writes them.

function swatch(parent, group) {
  const svg = add(parent, "svg", { class: "swatch", viewBox: "0 0 28 8", width: 28, height: 8, "aria-hidden": "true" });
  add(svg, "line", {
    x1: 1, y1: 4, x2: 27, y2: 4, stroke: group.colour, "stroke-width": 3, "stroke-dasharray": group.dashes,
  });
}

// A number with so many decimals, ties to even as Python rounds them: they are odd multiples of a power of two.
function fixed(value, digits) {
  const scaled = value * 2 ** (digits + 1);
  if (!Number.isInteger(scaled) || scaled % 2 === 0) return value.toFixed(digits);
  const below = Math.floor(value * 10 ** digits);
  return ((below + Math.abs(below % 2)) / 10 ** digits).toFixed(digits);
}

const percent = (share) => (Number.isFinite(share) ? `${fixed(100 * share, 1)}%` : "\u2013");

// A score with as many digits as its range needs.
const DIGITS = Math.max(0, Math.ceil(2 - Math.log10(HIGH - LOW) - 1e-9));
const scoreText = (value) => minus(String(Number(value.toFixed(DIGITS + 3))));
