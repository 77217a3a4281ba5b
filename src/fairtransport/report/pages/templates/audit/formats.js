// Line samples, and numbers as the page writes them.

function swatch(parent, group) {
  const svg = add(parent, "svg", { class: "swatch", viewBox: "0 0 28 8", width: 28, height: 8, "aria-hidden": "true" });
  add(svg, "line", {
    x1: 1, y1: 4, x2: 27, y2: 4, stroke: group.colour, "stroke-width": 3, "stroke-dasharray": group.dashes,
  });
}

const percent = (share) => `${(100 * share).toFixed(1)}%`;

// A score with as many digits as its range needs.
const DIGITS = Math.max(0, Math.ceil(2 - Math.log10(HIGH - LOW) - 1e-9));
const scoreText = (value) => minus(String(Number(value.toFixed(DIGITS + 3))));
