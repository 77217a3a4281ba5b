// Two charts of the same scores: the share above every threshold, and the distribution.

const POINTS = 240;

const LABELS = { positives: 1, negatives: 0 }; // charts of the rows with one label

const labelled = (group, label) => (label === undefined ? group.below : [group.below[label]]);
const weightOf = (group, label) => labelled(group, label).reduce((sum, one) => sum + one[one.length - 1], 0);

// Share above a threshold of each group's rows, or of those with a label.
function sharesAbove(audit, threshold, label) {
  const result = whatIf(audit, threshold, state.amount, chosenIndices());
  if (label === undefined) return result.rates.map((rate) => rate.value);
  return result.errorRates.map((rates) => rates[label ? "true_positive_rate" : "false_positive_rate"]?.value);
}

// The same of a group at POINTS + 1 scores from 0 to 1.
function curveAbove(group, amount, label) {
  const scores = repaired(group, amount);
  const values = new Float64Array(POINTS + 1);
  const total = weightOf(group, label);
  let at = 0;
  for (let j = 0; j <= POINTS; j += 1) {
    while (at < scores.length && scores[at] <= j / POINTS + SLACK) at += 1;
    values[j] = 1 - labelled(group, label).reduce((sum, one) => sum + one[at], 0) / total;
  }
  return values;
}

// Gaussian kernel density at the centres of POINTS cells, reflected at the edges, as in displays/_density.py.
function curveDensity(group, amount, size) {
  const scores = repaired(group, amount);
  const cells = new Float64Array(POINTS);
  let mean = 0;
  let squares = 0;
  for (let i = 0; i < scores.length; i += 1) {
    const mass = group.masses.reduce((sum, one) => sum + one[i], 0) / group.total;
    cells[Math.min(POINTS - 1, Math.max(0, Math.ceil(scores[i] * POINTS - SLACK) - 1))] += mass;
    mean += mass * scores[i];
    squares += mass * scores[i] ** 2;
  }
  const spread = Math.sqrt(Math.max(0, squares - mean * mean));
  const width = POINTS * Math.min(0.08, Math.max(0.012, 0.9 * spread * Math.max(size, 2) ** -0.2));
  const reach = Math.ceil(3 * width);
  const kernel = Array.from({ length: reach + 1 }, (_, k) => Math.exp((-k * k) / (2 * width * width)));
  const whole = kernel[0] + 2 * kernel.slice(1).reduce((sum, one) => sum + one, 0);
  const smooth = new Float64Array(POINTS);
  const inside = (k) => (k < 0 ? -k - 1 : k >= POINTS ? 2 * POINTS - 1 - k : k);
  cells.forEach((mass, j) => {
    if (!mass) return;
    for (let k = -reach; k <= reach; k += 1) smooth[inside(j + k)] += (mass * kernel[Math.abs(k)] * POINTS) / whole;
  });
  return smooth;
}

// Density of everyone: the weighted mean of the groups, or of all rows where groups overlap.
function densityOfEveryone(audit, amount) {
  if (audit.everyone) return curveDensity(audit.everyone, 0, audit.everyone.total);
  const whole = audit.groups.reduce((sum, group) => sum + group.total, 0);
  const mixed = new Float64Array(POINTS);
  for (const group of audit.groups) {
    if (!group.total) continue;
    const curve = curveDensity(group, amount, group.effective);
    for (let j = 0; j < POINTS; j += 1) mixed[j] += (curve[j] * group.total) / whole;
  }
  return mixed;
}

class Chart {
  constructor(figure) {
    this.kind = figure.dataset.chart;
    this.label = LABELS[this.kind];
    this.shares = this.kind !== "density";
    this.audit = AUDITS[Number(figure.dataset.audit)];
    this.plot = figure.querySelector(".plot");
    this.readout = figure.querySelector(".readout");
    this.svg = add(this.plot, "svg", { "aria-hidden": "true", focusable: "false" });
    this.listen();
  }

  // ------------------------------------------------------------------ sizes

  measure() {
    const width = Math.max(260, Math.round(this.plot.clientWidth));
    const height = width < 420 ? 220 : 290;
    const left = this.shares ? 44 : 8;
    Object.assign(this, { width, height, left, right: 12, top: 16, bottom: 40 });
    this.svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  }

  x(share) { return this.left + share * (this.width - this.left - this.right); }

  y(share) { return this.height - this.bottom - share * (this.height - this.top - this.bottom); }

  // ---------------------------------------------------------------- drawing

  draw() {
    if (!this.plot.clientWidth) return;
    this.measure();
    this.svg.replaceChildren();
    this.drawAxes();
    if (this.shares) this.drawAbove();
    else this.drawDensity();
    this.drawCut();
    this.guide = add(this.svg, "line", { class: "guide", y1: this.y(1), y2: this.y(0), visibility: "hidden" });
    if (this.hovered !== undefined) this.hover(this.hovered);
  }

  drawAxes() {
    const bottom = this.y(0);
    if (this.shares) {
      for (const share of [0, 0.25, 0.5, 0.75, 1]) {
        add(this.svg, "line", { class: "grid", x1: this.x(0), x2: this.x(1), y1: this.y(share), y2: this.y(share) });
        add(this.svg, "text", { x: this.left - 8, y: this.y(share) + 4, "text-anchor": "end" }, `${100 * share}%`);
      }
    }
    add(this.svg, "line", { class: "axis", x1: this.x(0), x2: this.x(1), y1: bottom, y2: bottom });
    for (const value of ticks(LOW, HIGH)) {
      const x = this.x(toUnit(value));
      add(this.svg, "line", { class: "axis", x1: x, x2: x, y1: bottom, y2: bottom + 4 });
      add(this.svg, "text", { x, y: bottom + 18, "text-anchor": "middle" }, minus(String(value)));
    }
    add(this.svg, "text", { x: this.x(1), y: bottom + 35, "text-anchor": "end" },
      this.shares ? `Threshold on the ${DATA.scoreTitle.toLowerCase()}` : DATA.scoreTitle);
  }

  // Groups without a style of their own first, so that the others are drawn on top.
  order() {
    const rank = (index) => (GROUPS[index].named ? (this.audit.groups[index].judged ? 2 : 1) : 0);
    const drawn = chosenIndices().filter((index) => weightOf(this.audit.groups[index], this.label) > 0);
    return drawn.sort((one, other) => rank(one) - rank(other));
  }

  path(index, values, xs, ys) {
    const group = GROUPS[index];
    const line = Array.from(values, (value, j) => `${j ? "L" : "M"}${xs(j).toFixed(1)} ${ys(value).toFixed(1)}`).join("");
    const kinds = ["curve", group.named ? "" : "other", this.audit.groups[index].judged ? "" : "few"];
    add(this.svg, "path", {
      class: kinds.join(" ").trim(), d: line, stroke: group.colour, "stroke-dasharray": group.dashes, "data-group": index,
    });
  }

  drawAbove() {
    const shares = sharesAbove(this.audit, state.threshold, this.label);
    const cx = this.x(toUnit(state.threshold));
    for (const index of this.order()) {
      const group = this.audit.groups[index];
      this.path(index, curveAbove(group, state.amount, this.label), (j) => this.x(j / POINTS), (share) => this.y(share));
    }
    for (const index of this.order()) {
      if (!GROUPS[index].named) continue;
      add(this.svg, "circle", { class: "dot", cx, cy: this.y(shares[index]), r: 4.5, fill: GROUPS[index].colour });
    }
  }

  drawDensity() {
    const xs = (j) => this.x((j + 0.5) / POINTS);
    const everyone = densityOfEveryone(this.audit, state.amount);
    const indices = this.order();
    const judged = indices.filter((index) => this.audit.groups[index].judged); // few rows make no curve
    const curves = (judged.length ? judged : indices).map((index) => {
      const group = this.audit.groups[index];
      return [index, curveDensity(group, state.amount, group.effective)];
    });
    const top = 1.08 * curves.reduce((most, [, curve]) => Math.max(most, ...curve), Math.max(...everyone));
    const ys = (value) => this.y(value / top);
    const area = Array.from(everyone, (value, j) => `L${xs(j).toFixed(1)} ${ys(value).toFixed(1)}`).join("");
    add(this.svg, "path", { class: "everyone", d: `M${xs(0)} ${this.y(0)}${area}L${xs(POINTS - 1)} ${this.y(0)}Z` });
    for (const [index, curve] of curves) this.path(index, curve, xs, ys);
  }

  drawCut() {
    const x = this.x(toUnit(state.threshold));
    add(this.svg, "line", { class: "cut", x1: x, x2: x, y1: this.top - 8, y2: this.y(0) });
    add(this.svg, "circle", { class: "cut-handle", cx: x, cy: this.top - 8, r: 5 });
  }

  // Highlight the line of a group; null for none.
  light(index) {
    for (const path of this.svg.querySelectorAll(".curve")) path.classList.toggle("lit", Number(path.dataset.group) === index);
  }

  // ------------------------------------------------------------------ mouse

  shareAt(event) {
    const box = this.svg.getBoundingClientRect();
    const x = ((event.clientX - box.left) * this.width) / box.width;
    return Math.min(1, Math.max(0, (x - this.left) / (this.width - this.left - this.right)));
  }

  listen() {
    const choose = (event) => setThreshold(fromUnit(Math.round(this.shareAt(event) * 200) / 200));
    this.plot.addEventListener("pointerdown", (event) => {
      if (event.button) return;
      this.plot.setPointerCapture(event.pointerId);
      this.dragging = true;
      choose(event);
    });
    this.plot.addEventListener("pointermove", (event) => {
      if (this.dragging) choose(event);
      this.hover(this.shareAt(event));
    });
    for (const end of ["pointerup", "pointercancel"]) this.plot.addEventListener(end, () => { this.dragging = false; });
    this.plot.addEventListener("pointerleave", () => {
      this.hovered = undefined;
      this.readout.hidden = true;
      this.guide.setAttribute("visibility", "hidden");
    });
  }

  hover(share) {
    this.hovered = share;
    const x = this.x(share);
    this.guide.setAttribute("x1", x);
    this.guide.setAttribute("x2", x);
    this.guide.setAttribute("visibility", "visible");
    this.readout.replaceChildren();
    const threshold = fromUnit(Math.round(share * 1000) / 1000);
    addHtml(this.readout, "p", "", `Above ${scoreText(threshold)}`);
    const shares = sharesAbove(this.audit, threshold, this.label);
    const indices = chosenIndices().filter((index) => weightOf(this.audit.groups[index], this.label) > 0);
    const shown = indices.filter((index) => indices.length <= 12 || GROUPS[index].named);
    for (const index of shown) {
      const group = this.audit.groups[index];
      const line = addHtml(this.readout, "div");
      swatch(line, GROUPS[index]);
      addHtml(line, "bdi", "", GROUPS[index].name);
      addHtml(line, "b", "", percent(shares[index]));
      if (!group.judged) addHtml(line, "span", "few-rows", "few rows");
    }
    if (shown.length < indices.length) addHtml(this.readout, "p", "", `and ${indices.length - shown.length} smaller groups`);
    this.readout.hidden = false;
    this.readout.style.left = share > 0.5 ? `${this.left + 8}px` : "auto";
    this.readout.style.right = share > 0.5 ? "auto" : "8px";
  }
}
