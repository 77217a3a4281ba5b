// The table, the strip of figures and the sentence that follow the sliders.

const rowsOfTable = new Map([...document.querySelectorAll("#live tbody tr")].map((row) => [Number(row.dataset.place), row]));
let latest = null; // what is shown now, for sorting and saving
let speaking = null;

function setCell(row, name, text, value) {
  const cell = row.querySelector(`[data-cell="${name}"]`);
  if (!cell) return;
  cell.textContent = text;
  cell.dataset.value = value;
}

function setAll(name, text, root = document) {
  for (const element of root.querySelectorAll(`[data-live="${name}"]`)) element.textContent = text;
}

const ratioText = (value) => (Number.isFinite(value) ? value.toFixed(2) : "\u2013");

function fourFifths(ratio) {
  if (!Number.isFinite(ratio.value)) return "nobody is selected";
  if (ratio.low >= 0.8) return "at least four fifths";
  if (ratio.high < 0.8) return "below four fifths";
  return "not surely above or below four fifths";
}

// The mean distance of two groups chosen, in percentage points.
function gapText(sum) {
  const n = chosenPlaces().length;
  return n < 2 ? "\u2013" : `${((200 * sum) / (n * (n - 1))).toFixed(1)} points`;
}

function updateLive() {
  const chosen = chosenPlaces();
  const now = AUDITS.map((audit) => whatIf(audit, state.threshold, state.amount, chosen));
  const unrepaired = state.amount ? whatIf(AUDITS[0], state.threshold, 0, chosen) : now[0];
  latest = { now, chosen };
  setAll("threshold", scoreText(state.threshold));
  setAll("amount", String(Number((100 * state.amount).toFixed(2))));
  setAll("repaired", state.amount ? `, ${Number((100 * state.amount).toFixed(2))}% repaired` : "");
  now.forEach((found, number) => updateStrip(found, number, unrepaired));
  for (const [place, row] of rowsOfTable) updateRow(row, place, now, chosen);
  clearTimeout(speaking);
  const speak = () => { document.getElementById("told").replaceChildren(...sentence(now, chosen, unrepaired)); };
  if (updateLive.spoken) speaking = setTimeout(speak, 150);
  else speak();
  updateLive.spoken = true;
}

function updateStrip(found, number, unrepaired) {
  const strip = document.querySelector(`.strip[data-audit="${number}"]`);
  const put = (name, text, value, was) => {
    const element = strip.querySelector(`[data-live="${name}"]`);
    if (!element) return;
    element.textContent = text;
    element.dataset.value = value;
    if (state.amount && was !== text) addHtml(element, "span", "was", ` from ${was}`);
  };
  put("overall", percent(found.overall), found.overall, percent(unrepaired.overall));
  put("ratio", ratioText(found.ratio.value), found.ratio.value, ratioText(unrepaired.ratio.value));
  put("disparity", gapText(found.disparity), found.disparity, gapText(unrepaired.disparity));
  if (found.error !== null) put("error", percent(found.error), found.error, percent(unrepaired.error));
}

function updateRow(row, place, now, chosen) {
  row.classList.toggle("off", !state.chosen[place]);
  row.classList.toggle("few", AUDITS.some((audit) => audit.groups[place].unsure));
  now.forEach((found, number) => {
    const rate = found.rates[place];
    const top = chosen.length ? found.rates[found.highest].value : NaN;
    setCell(row, `rate-${number}`, percent(rate.value), rate.value);
    setCell(row, `interval-${number}`, `${percent(rate.low)} to ${percent(rate.high)}`, `${rate.low} ${rate.high}`);
    setCell(row, `ratio-${number}`, top > 0 ? ratioText(rate.value / top) : "\u2013", top > 0 ? rate.value / top : NaN);
    if (found.errors) setCell(row, `error-${number}`, percent(found.errors[place]), found.errors[place]);
  });
  if (now.length === 2) {
    const change = now[1].rates[place].value - now[0].rates[place].value;
    setCell(row, "change", minus(`${change >= 0 ? "+" : ""}${(100 * change).toFixed(1)}`), change);
  } else {
    updateBar(row.querySelector(".bar"), now[0].rates[place], chosen.length ? now[0].rates[now[0].highest].value : 0);
  }
}

function updateBar(bar, rate, top) {
  bar.querySelector(".fill").setAttribute("width", 100 * rate.value);
  const whisker = bar.querySelector(".whisker");
  whisker.setAttribute("x1", 100 * rate.low);
  whisker.setAttribute("x2", 100 * rate.high);
  const fifths = bar.querySelector(".fifths");
  fifths.setAttribute("x1", 80 * top);
  fifths.setAttribute("x2", 80 * top);
}

// The figures in words, as nodes: names in elements of their own, so that they keep their direction of writing.
function sentence(now, chosen, unrepaired) {
  if (chosen.length < 2) return ["Choose two groups or more to compare them."];
  const parts = [];
  const name = (place) => {
    const element = document.createElement("bdi");
    const text = GROUPS[place].name;
    element.textContent = text.length > 60 ? `${text.slice(0, 59)}\u2026` : text;
    return element;
  };
  if (chosen.length < GROUPS.length) parts.push(`Of the ${chosen.length} groups chosen: `);
  now.forEach((found, number) => {
    if (now.length > 1) parts.push(`${number ? " " : ""}${AUDITS[number].name}: `);
    const { lowest, highest, ratio } = found;
    if (!Number.isFinite(ratio.value)) {
      parts.push("Nobody is selected.");
      return;
    }
    if (lowest === highest) {
      parts.push(`${percent(found.rates[lowest].value)} of every group are selected.`);
      return;
    }
    const high = Number.isFinite(ratio.high) ? ratio.high.toFixed(2) : "\u221e";
    parts.push(`${percent(found.rates[lowest].value)} of `, name(lowest), " and ");
    parts.push(`${percent(found.rates[highest].value)} of `, name(highest), " are selected, ");
    parts.push(`a ratio of ${ratio.value.toFixed(2)} (${DATA.confidence} interval ${ratio.low.toFixed(2)} to ${high}), `);
    parts.push(`${fourFifths(ratio)}.`);
  });
  if (state.amount && unrepaired.error !== null) {
    parts.push(` ${percent(now[0].error)} of all decisions are wrong, ${percent(unrepaired.error)} without repair.`);
  }
  return parts;
}

// ------------------------------------------------------------------------------------------------------------ sorting

function sortBy(head) {
  const key = head.dataset.sort;
  const before = head.getAttribute("aria-sort");
  const direction = before === "ascending" ? "descending" : "ascending";
  for (const other of document.querySelectorAll("#live thead th")) other.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", direction);
  const sign = direction === "ascending" ? 1 : -1;
  const value = (place) => {
    const number = Number(rowsOfTable.get(place).querySelector(`[data-cell="${key}"]`).dataset.value);
    return Number.isNaN(number) ? -Infinity : number;
  };
  const order = [...rowsOfTable.keys()].sort((one, other) => {
    if (key === "name") return sign * GROUPS[one].name.localeCompare(GROUPS[other].name);
    const unsure = Number(AUDITS[0].groups[one].unsure) - Number(AUDITS[0].groups[other].unsure); // they say least
    return unsure || sign * (value(one) - value(other)) || one - other;
  });
  document.querySelector("#live tbody").append(...order.map((place) => rowsOfTable.get(place)));
}

// The table as rows for a spreadsheet.
function liveSheet() {
  const several = AUDITS.length > 1;
  const head = ["Group", "Rows", "Threshold", ...(REPAIRABLE ? ["Repair"] : [])];
  AUDITS.forEach((audit) => {
    const of = several ? ` (${audit.name})` : "";
    head.push(`Selected${of}`, `Low${of}`, `High${of}`, ...(DATA.labelled ? [`Wrong${of}`] : []));
  });
  const rows = GROUPS.map((group, place) => [
    group.name, AUDITS[0].groups[place].rows, state.threshold, ...(REPAIRABLE ? [state.amount] : []),
    ...latest.now.flatMap((found) => [
      found.rates[place].value, found.rates[place].low, found.rates[place].high,
      ...(found.errors ? [found.errors[place]] : []),
    ]),
  ]);
  return [head, ...rows];
}
