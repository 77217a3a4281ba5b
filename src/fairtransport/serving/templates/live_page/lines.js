// Charts: one class for all kinds. `view` returns what a kind shows at each index of its horizontal axis.

const PLAIN = { colour: "", dashes: "", named: true };

class Chart {
  constructor(figure) {
    this.kind = figure.dataset.chart;
    this.plot = figure.querySelector(".plot");
    this.readout = figure.querySelector(".readout");
    this.caption = figure.querySelector("figcaption");
    this.svg = add(this.plot, "svg", { "aria-hidden": "true", focusable: "false" });
    this.listen();
  }

  // What a chart shows: x values, lines, an area, alarms, bars, axes.
  view(data) {
    const { history, groups, styles } = data;
    const along = { x: history.batch, label: "Batch", describe: (x) => `Batch ${thousands(x)}`, whole: true };
    const clip = (low, high) => [Math.min(0, low), high];
    if (this.kind === "disparity") {
      return {
        ...along, range: clip, area: history.noise_floor, areaName: "Noise floor", alarms: history.alarm,
        lines: [{ name: "Disparity", style: PLAIN, values: history.disparity }], show: (value) => fixed(value),
      };
    }
    if (this.kind === "agreement") {
      return {
        ...along, lines: [{ name: "Agreement", style: PLAIN, values: history.agreement }], show: percent,
        range: (low) => [Math.min(0.9, Math.floor(10 * low) / 10), 1],
      };
    }
    if (this.kind === "moved") {
      return { ...along, range: clip, lines: [{ name: "Distance", style: PLAIN, values: history.moved }], show: short };
    }
    if (this.kind === "updates") {
      return { ...along, range: clip, bars: true, lines: [{ name: "Updates", style: PLAIN, values: history.updates }], show: thousands };
    }
    if (this.kind === "histograms") {
      const { edges } = data;
      const middles = edges.slice(1).map((edge, j) => (edge + edges[j]) / 2);
      const lines = groups.map((name, index) => ({ name, style: styles[index], values: data.histograms[index] || [] }));
      return {
        x: middles, ends: [edges[0], edges[edges.length - 1]], edges, label: "Score", range: clip,
        area: reference(data).shares, areaName: data.target ? "Target" : "Everyone",
        describe: (x, j) => `Score ${short(edges[j])} to ${short(edges[j + 1])}`, lines, show: percent, steps: true,
      };
    }
    const { duals } = data;
    if (!duals) return { x: [], lines: [], nothing: "This model has no dual potentials." };
    const style = (name, index) => styles[groups.indexOf(name)] || styles[index % (styles.length || 1)] || PLAIN;
    return {
      x: duals.grid, label: "Score", range: (low, high) => [Math.min(0, low), Math.max(0, high)], zero: true,
      describe: (x) => `Score ${short(x)}`, show: (value) => fixed(value),
      lines: duals.names.map((name, index) => ({ name, style: style(name, index), values: duals.values[index] })),
    };
  }

  // ---------------------------------------------------------------- drawing

  draw(data) {
    this.data = data;
    if (!this.plot.clientWidth) return;
    const view = this.view(data);
    this.shown = view;
    if (this.caption) this.caption.hidden = Boolean(view.nothing);
    const width = Math.max(240, Math.round(this.plot.clientWidth));
    const height = this.plot.classList.contains("tall") ? (width < 500 ? 220 : 260) : 200;
    Object.assign(this, { width, height, left: 48, right: 12, top: 14, bottom: 38 });
    this.svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    this.svg.replaceChildren();
    if (!this.scale(view)) {
      this.readout.hidden = true;
      add(this.svg, "text", { class: "nothing", x: width / 2, y: height / 2, "text-anchor": "middle" }, view.nothing || "No data yet.");
      return;
    }
    this.drawAxes(view);
    if (view.area) this.drawArea(view);
    this.drawAlarms(view);
    const order = [...view.lines].sort((one, other) => Number(one.style.named) - Number(other.style.named));
    for (const line of order) this.drawLine(view, line);
    this.guide = add(this.svg, "line", { class: "guide", y1: this.top, y2: this.height - this.bottom, visibility: "hidden" });
    this.hover(this.index);
  }

  // Choose the scales; return false if there is nothing to draw.
  scale(view) {
    const values = [...view.lines.map((line) => line.values), view.area || []].flat().filter(isNumber);
    const xs = view.x.filter(isNumber);
    if (!values.length || !xs.length) return false;
    let low = Infinity;
    let high = -Infinity;
    for (const value of values) {
      low = Math.min(low, value);
      high = Math.max(high, value);
    }
    [low, high] = view.range(low, high);
    if (high - low < 1e-9) high = low + 1;
    const margin = this.kind === "agreement" ? 0 : 0.06 * (high - low);
    const [first, last] = view.ends || [xs[0], xs[xs.length - 1]];
    const spread = last - first || 1;
    this.low = low < 0 ? low - margin : low;
    this.high = high + margin;
    this.x = (x) => this.left + ((x - first) / spread) * (this.width - this.left - this.right);
    this.y = (y) => this.height - this.bottom - ((y - this.low) / (this.high - this.low)) * (this.height - this.top - this.bottom);
    this.first = first;
    this.last = last;
    return true;
  }

  drawAxes(view) {
    const bottom = this.height - this.bottom;
    for (const value of ticks(this.low, this.high, 4)) {
      const y = this.y(value);
      add(this.svg, "line", { class: value === 0 && view.zero ? "axis" : "grid", x1: this.left, x2: this.width - this.right, y1: y, y2: y });
      add(this.svg, "text", { x: this.left - 8, y: y + 4, "text-anchor": "end" }, this.tick(value));
    }
    add(this.svg, "line", { class: "axis", x1: this.left, x2: this.width - this.right, y1: bottom, y2: bottom });
    for (const value of ticks(this.first, this.last, this.width < 420 ? 3 : 6)) {
      if (view.whole && !Number.isInteger(value)) continue;
      const x = this.x(value);
      add(this.svg, "line", { class: "axis", x1: x, x2: x, y1: bottom, y2: bottom + 4 });
      add(this.svg, "text", { x, y: bottom + 18, "text-anchor": "middle" }, view.whole ? thousands(value) : minus(String(value)));
    }
    add(this.svg, "text", { x: this.width - this.right, y: bottom + 34, "text-anchor": "end" }, view.label);
  }

  tick(value) {
    if (this.kind === "agreement" || this.kind === "histograms") return `${Number((100 * value).toPrecision(6))}%`;
    return minus(Math.abs(value) >= 1000 ? value.toLocaleString("en") : String(value));
  }

  // Path through the values, with a gap where one is missing.
  path(view, values) {
    const parts = [];
    let open = false;
    values.forEach((value, j) => {
      if (!isNumber(value) || !isNumber(view.x[j])) { open = false; return; }
      const y = this.y(value).toFixed(1);
      if (view.steps) {
        parts.push(`${open ? "L" : "M"}${this.x(view.edges[j]).toFixed(1)} ${y}H${this.x(view.edges[j + 1]).toFixed(1)}`);
      } else {
        parts.push(`${open ? "L" : "M"}${this.x(view.x[j]).toFixed(1)} ${y}`);
      }
      open = true;
    });
    if (parts.length === 1 && !view.steps) parts.push("h0.1"); // a single point is drawn as a dot
    return parts.join("");
  }

  drawArea(view) {
    const zero = this.y(Math.max(0, this.low)).toFixed(1);
    const path = this.path(view, view.area);
    if (!path) return;
    const filled = view.area.map((value, j) => [value, j]).filter(([value, j]) => isNumber(value) && isNumber(view.x[j])).map(([, j]) => j);
    const [from, to] = [filled[0], filled[filled.length - 1]];
    const [left, right] = view.steps ? [view.edges[from], view.edges[to + 1]] : [view.x[from], view.x[to]];
    const area = `M${this.x(left).toFixed(1)} ${zero}${path.replaceAll("M", "L")}L${this.x(right).toFixed(1)} ${zero}Z`;
    add(this.svg, "path", { class: this.kind === "histograms" ? "target" : "floor", d: area });
  }

  drawAlarms(view) {
    (view.alarms || []).forEach((alarm, j) => {
      if (!alarm || !isNumber(view.x[j])) return;
      const x = this.x(view.x[j]);
      add(this.svg, "line", { class: "alarm", x1: x, x2: x, y1: this.top, y2: this.height - this.bottom });
      add(this.svg, "path", { class: "sign", d: `M${x - 6} ${this.top - 9}h12l-6 10Z`, "data-batch": view.x[j] });
    });
  }

  drawLine(view, line) {
    if (view.bars) {
      const zero = this.y(0);
      const barWidth = Math.max(1, Math.min(8, (this.width - this.left - this.right) / view.x.length - 0.5));
      const bars = line.values.map((value, j) => (isNumber(value) && value > 0
        ? `M${(this.x(view.x[j]) - barWidth / 2).toFixed(1)} ${zero.toFixed(1)}V${this.y(value).toFixed(1)}h${barWidth.toFixed(1)}V${zero.toFixed(1)}Z` : ""));
      add(this.svg, "path", { class: "bars", d: bars.join("") });
      return;
    }
    const plain = !line.style.colour;
    add(this.svg, "path", {
      class: `curve ${plain ? "plain" : ""} ${line.style.named ? "" : "other"}`.trim(), d: this.path(view, line.values),
      ...(plain ? { "stroke-linecap": "round" } : { stroke: line.style.colour, "stroke-dasharray": line.style.dashes || "none" }),
    });
  }

  // ---------------------------------------------------------------- values under the pointer

  listen() {
    this.plot.addEventListener("pointermove", (event) => this.hover(this.nearest(event)));
    this.plot.addEventListener("pointerdown", (event) => this.hover(this.nearest(event)));
    this.plot.addEventListener("pointerleave", () => this.hover(undefined));
    this.plot.addEventListener("blur", () => this.hover(undefined));
    this.plot.addEventListener("keydown", (event) => {
      const last = this.shown ? this.shown.x.length - 1 : -1;
      const now = this.index ?? last;
      const to = { ArrowLeft: now - 1, ArrowRight: now + 1, Home: 0, End: last, Escape: undefined };
      if (!(event.key in to) || last < 0) return;
      event.preventDefault();
      this.hover(to[event.key] === undefined ? undefined : Math.min(last, Math.max(0, to[event.key])));
      if (this.index !== undefined) byId("spoken").textContent = this.readout.textContent;
    });
  }

  nearest(event) {
    if (!this.shown || !this.x) return undefined;
    const box = this.svg.getBoundingClientRect();
    const at = ((event.clientX - box.left) * this.width) / box.width;
    let best;
    this.shown.x.forEach((x, j) => {
      if (isNumber(x) && (best === undefined || Math.abs(this.x(x) - at) < Math.abs(this.x(this.shown.x[best]) - at))) best = j;
    });
    return best;
  }

  hover(index) {
    const view = this.shown;
    this.index = index;
    const none = index === undefined || !view || !isNumber(view.x[index]) || !this.x;
    this.readout.hidden = none;
    if (this.guide) this.guide.setAttribute("visibility", none ? "hidden" : "visible");
    if (none) return;
    const x = this.x(view.x[index]);
    this.guide.setAttribute("x1", x);
    this.guide.setAttribute("x2", x);
    this.readout.replaceChildren();
    addHtml(this.readout, "p", "", `${view.describe(view.x[index], index)} `);
    const lines = view.lines.filter((line) => line.style.named);
    for (const line of lines) this.read(line.name, line.style, view.show(line.values[index]));
    if (lines.length < view.lines.length) addHtml(this.readout, "p", "", `and ${view.lines.length - lines.length} smaller groups `);
    if (view.area) this.read(view.areaName, null, view.show(view.area[index]));
    if (view.alarms && view.alarms[index]) addHtml(this.readout, "p", "", "Alarm");
    this.readout.style.left = x > this.width / 2 ? `${this.left + 8}px` : "auto";
    this.readout.style.right = x > this.width / 2 ? "auto" : "8px";
  }

  read(name, style, value) {
    const row = addHtml(this.readout, "div");
    if (style && style.colour) addName(row, style, name);
    else addHtml(row, "bdi", "", name);
    addHtml(row, "b", "", ` ${value} `);
  }
}
