// The table, the strip of results and the sentence that follow the sliders.

const rowsOfTable = new Map([...document.querySelectorAll("#live tbody tr")].map((row) => [Number(row.dataset.group), row]));
let latest = null; // the results shown, for sorting and saving
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

const CHOSEN = HIGH_IS_FAVOURABLE ? "selected" : "flagged";
const ratioText = (value) => (Number.isFinite(value) ? fixed(value, 2) : "\u2013");

function fourFifths(ratio) {
  if (!Number.isFinite(ratio.value)) return HIGH_IS_FAVOURABLE ? "nobody is selected" : "everyone is flagged";
  if (ratio.low >= 0.8) return "at least four fifths";
  if (ratio.high < 0.8) return "below four fifths";
  return "not certainly above or below four fifths";
}

// Mean distance between two of the chosen groups that are judged, in percentage points.
function gapText(result) {
  return result.compared < 2 ? "\u2013" : `${fixed(100 * result.disparity, 1)} points`;
}

function updateLive() {
  const chosen = chosenIndices();
  const now = AUDITS.map((audit) => whatIf(audit, state.threshold, state.amount, chosen));
  const unrepaired = state.amount ? whatIf(AUDITS[0], state.threshold, 0, chosen) : now[0];
  latest = { now, chosen };
  setAll("threshold", scoreText(state.threshold));
  setAll("amount", String(Number((100 * state.amount).toFixed(2))));
  setAll("repaired", state.amount ? `, ${Number((100 * state.amount).toFixed(2))}% repaired` : "");
  now.forEach((result, number) => updateStrip(result, number, unrepaired));
  for (const [index, row] of rowsOfTable) updateRow(row, index, now, chosen);
  if (rowsOfErrors.length) updateErrors(now[0], chosen);
  clearTimeout(speaking);
  const speak = () => { document.getElementById("live-summary").replaceChildren(...sentence(now, chosen, unrepaired)); };
  if (updateLive.spoken) speaking = setTimeout(speak, 150);
  else speak();
  updateLive.spoken = true;
}

function updateStrip(result, number, unrepaired) {
  const strip = document.querySelector(`.strip[data-audit="${number}"]`);
  const put = (name, text, value, was) => {
    const element = strip.querySelector(`[data-live="${name}"]`);
    if (!element) return;
    element.textContent = text;
    element.dataset.value = value;
    if (state.amount && was !== text) addHtml(element, "span", "was", ` from ${was}`);
  };
  put("overall", percent(result.overall), result.overall, percent(unrepaired.overall));
  put("ratio", ratioText(result.ratio.value), result.ratio.value, ratioText(unrepaired.ratio.value));
  put("disparity", gapText(result), result.disparity, gapText(unrepaired));
  if (result.error !== null) put("error", percent(result.error), result.error, percent(unrepaired.error));
}

function updateRow(row, index, now, chosen) {
  row.classList.toggle("off", !state.chosen[index]);
  row.classList.toggle("few", AUDITS.some((audit) => !audit.groups[index].judged));
  if (GROUPS[index].withheld) return;
  now.forEach((result, number) => {
    const rate = result.rates[index];
    const top = chosen.length ? result.outcomes[result.better].value : NaN;
    const outcome = result.outcomes[index].value;
    setCell(row, `rate-${number}`, percent(rate.value), rate.value);
    setCell(row, `interval-${number}`, `${percent(rate.low)} to ${percent(rate.high)}`, `${rate.low} ${rate.high}`);
    setCell(row, `ratio-${number}`, top > 0 ? ratioText(outcome / top) : "\u2013", top > 0 ? outcome / top : NaN);
    if (result.errors) setCell(row, `error-${number}`, percent(result.errors[index]), result.errors[index]);
  });
  if (now.length === 2) {
    const change = now[1].rates[index].value - now[0].rates[index].value;
    setCell(row, "change", minus(`${change >= 0 ? "+" : ""}${fixed(100 * change, 1)}`), change);
  } else {
    updateBar(row.querySelector(".bar"), now[0].rates[index], chosen.length ? now[0].outcomes[now[0].better].value : 0);
    markWorse(row, chosen.length > 1 && index === now[0].worse && now[0].ratio.value < 1);
  }
}

function updateBar(bar, rate, top) {
  bar.querySelector(".fill").setAttribute("width", 100 * rate.value);
  const whisker = bar.querySelector(".whisker");
  whisker.setAttribute("x1", 100 * rate.low);
  whisker.setAttribute("x2", 100 * rate.high);
  const fifths = bar.querySelector(".fifths");
  const mark = HIGH_IS_FAVOURABLE ? 80 * top : 100 - 80 * top;
  fifths.setAttribute("x1", mark);
  fifths.setAttribute("x2", mark);
}

// Mark the group whose rate of the favourable outcome is lowest.
function markWorse(row, isWorse) {
  const head = row.querySelector("th .name");
  const mark = head.querySelector(".worse");
  if (isWorse && !mark) addHtml(head, "span", "worse", HIGH_IS_FAVOURABLE ? "lowest" : "highest");
  if (!isWorse && mark) mark.remove();
}

// The results in words, as nodes: names are isolated, so that they keep their direction of writing.
function sentence(now, chosen, unrepaired) {
  if (chosen.length < 2) return ["Choose two groups or more to compare them."];
  const parts = [];
  const name = (index) => {
    const element = document.createElement("bdi");
    element.textContent = GROUPS[index].short;
    return element;
  };
  if (chosen.length < N_SHOWN) parts.push(`Of the ${chosen.length} chosen groups: `);
  now.forEach((result, number) => {
    if (now.length > 1) parts.push(`${number ? " " : ""}${AUDITS[number].name}: `);
    const { lowest, highest, ratio } = result;
    if (!Number.isFinite(ratio.value)) {
      parts.push(HIGH_IS_FAVOURABLE ? "Nobody is selected." : "Everyone is flagged.");
      return;
    }
    if (lowest === highest) {
      parts.push(`${percent(result.rates[lowest].value)} of every group are ${CHOSEN}.`);
      return;
    }
    const high = Number.isFinite(ratio.high) ? fixed(ratio.high, 2) : "\u221e";
    parts.push(`${percent(result.rates[lowest].value)} of `, name(lowest), " and ");
    parts.push(`${percent(result.rates[highest].value)} of `, name(highest), ` are ${CHOSEN}, `);
    parts.push(`${HIGH_IS_FAVOURABLE ? "a ratio" : "a ratio of those not flagged"} of ${fixed(ratio.value, 2)} (${DATA.confidence} interval ${fixed(ratio.low, 2)} to ${high}), `);
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
  const value = (index) => {
    const number = Number(rowsOfTable.get(index).querySelector(`[data-cell="${key}"]`).dataset.value);
    return Number.isNaN(number) ? -Infinity : number;
  };
  const order = [...rowsOfTable.keys()].sort((one, other) => {
    if (key === "name") return sign * GROUPS[one].name.localeCompare(GROUPS[other].name);
    const few = Number(AUDITS[0].groups[other].judged) - Number(AUDITS[0].groups[one].judged); // few rows: at the end
    return few || sign * (value(one) - value(other)) || one - other;
  });
  document.querySelector("#live tbody").append(...order.map((index) => rowsOfTable.get(index)));
}

// The table as rows for a spreadsheet.
function liveSheet() {
  const several = AUDITS.length > 1;
  const head = ["Group", "Rows", "Threshold", ...(REPAIRABLE ? ["Repair"] : [])];
  AUDITS.forEach((audit) => {
    const of = several ? ` (${audit.name})` : "";
    head.push(`Selected${of}`, `Low${of}`, `High${of}`, ...(DATA.labelled ? [`Wrong${of}`] : []));
  });
  const rows = GROUPS.map((group, index) => [
    group.name, AUDITS[0].groups[index].rows, state.threshold, ...(REPAIRABLE ? [state.amount] : []),
    ...latest.now.flatMap((result) => [
      result.rates[index].value, result.rates[index].low, result.rates[index].high,
      ...(result.errors ? [result.errors[index]] : []),
    ]),
  ]);
  return [head, ...rows];
}
