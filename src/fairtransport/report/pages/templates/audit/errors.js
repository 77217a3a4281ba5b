// The table of errors by group, which follows the sliders.

const rowsOfErrors = [...document.querySelectorAll("#error-rates tbody tr")];

function updateErrors(result, chosen) {
  for (const row of rowsOfErrors) {
    const { group } = row.dataset;
    const everyone = group === "everyone";
    const rates = everyone ? result.overallRates : result.errorRates[Number(group)];
    if (!everyone) row.classList.toggle("off", !state.chosen[Number(group)]);
    for (const cell of row.querySelectorAll("[data-cell]")) {
      const rate = rates[cell.dataset.cell];
      const value = everyone ? rate : rate?.value ?? null;
      cell.dataset.value = value ?? "";
      cell.querySelector('[data-part="value"]').textContent = value === null ? "\u2013" : percent(value);
      const interval = rate && !everyone ? `${percent(rate.low)} to ${percent(rate.high)}` : "";
      cell.querySelector('[data-part="interval"]').textContent = interval;
    }
  }
  document.getElementById("errors-summary").textContent = oddsText(result, chosen);
}

// The largest difference of a rate between chosen groups with enough rows for it; null for fewer than two.
function largestDifference(result, name, chosen) {
  if (result.gaps) return result.gaps[name];
  const rates = chosen.map((index) => result.errorRates[index][name]).filter((rate) => rate);
  const enough = rates.filter((rate) => rate.size >= DATA.minJudgedRows);
  const values = (enough.length >= 2 ? enough : rates).map((rate) => rate.value);
  return values.length < 2 ? null : Math.max(...values) - Math.min(...values);
}

function oddsText(result, chosen) {
  const [tpr, fpr] = ["true_positive_rate", "false_positive_rate"].map((name) => largestDifference(result, name, chosen));
  if (tpr === null || fpr === null) return "Fewer than two groups have rows of both labels.";
  const points = (value) => `${fixed(100 * value, 1)} points`;
  return `Largest differences: ${points(tpr)} of true positive rates and ${points(fpr)} of false positive rates; `
    + `equalized odds are violated by ${points(Math.max(tpr, fpr))}.`;
}

// The table as rows for a spreadsheet.
function errorSheet() {
  const names = Object.keys(ERROR_RATES);
  const head = ["Group", "Threshold", ...(REPAIRABLE ? ["Repair"] : []), ...names.flatMap((name) => [name, "low", "high"])];
  const [result] = latest.now;
  const rows = GROUPS.map((group, index) => [
    group.name, state.threshold, ...(REPAIRABLE ? [state.amount] : []),
    ...names.flatMap((name) => {
      const rate = result.errorRates[index][name];
      return rate ? [rate.value, rate.low, rate.high] : ["", "", ""];
    }),
  ]);
  return [head, ...rows];
}
