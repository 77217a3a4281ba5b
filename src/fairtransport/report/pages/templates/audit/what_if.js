// Result of a threshold and an amount of repair: the same computations as in fairtransport/report/_what_if.py.

function repaired(group, amount) {
  if (!amount || !group.images) return group.scores;
  if (group.repairedBy !== amount) {
    group.repaired = group.scores.map((score, i) => (1 - amount) * score + amount * group.images[i]);
    group.repairedBy = amount;
  }
  return group.repaired;
}

// The first node that is not below the threshold.
function nextNode(audit, cut) {
  let low = 0;
  let high = audit.bins;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (nodeScore(audit, middle) < cut - SLACK) low = middle + 1;
    else high = middle;
  }
  return nodeScore(audit, low);
}

// Number of the ascending scores at or below the cut.
function countBelow(scores, cut) {
  let low = 0;
  let high = scores.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (scores[middle] > cut + SLACK) high = middle;
    else low = middle + 1;
  }
  return low;
}

function weightAbove(group, scores, cut) {
  const at = countBelow(scores, cut);
  return group.total - group.below.reduce((sum, one) => sum + one[at], 0);
}

function weightWrong(group, scores, cut) {
  const at = countBelow(scores, cut);
  const [zeros, ones] = group.below;
  return zeros[zeros.length - 1] - zeros[at] + ones[at];
}

const ERROR_RATES = {
  true_positive_rate: (t) => [t.tp, t.fn],
  false_positive_rate: (t) => [t.fp, t.tn],
  false_negative_rate: (t) => [t.fn, t.tp],
  positive_predictive_value: (t) => [t.tp, t.fp],
  negative_predictive_value: (t) => [t.tn, t.fn],
  accuracy: (t) => [t.tp + t.tn, t.fp + t.fn],
};

// Weight of the rows by label and decision.
function decisions(group, scores, cut) {
  const at = countBelow(scores, cut);
  const [zeros, ones] = group.below;
  return { tn: zeros[at], fp: zeros[zeros.length - 1] - zeros[at], fn: ones[at], tp: ones[ones.length - 1] - ones[at] };
}

// The rates of a table of decisions, with Wilson's intervals; null without rows. Weights inflate variances by "design".
function errorRates(table, design) {
  return Object.fromEntries(Object.entries(ERROR_RATES).map(([name, counts]) => {
    const [inside, outside] = counts(table);
    const total = inside + outside;
    return [name, total > 0 ? { ...wilson(inside / total, total / design, DATA.z), size: total / design } : null];
  }));
}

const valuesOf = (rates) => Object.fromEntries(Object.entries(rates).map(([name, rate]) => [name, rate && rate.value]));
const complement = (rate) => ({ value: 1 - rate.value, low: 1 - rate.high, high: 1 - rate.low });
const HIGH_IS_FAVOURABLE = DATA.favourable === "high";

// Wilson's interval of a share.
function wilson(value, size, z) {
  const z2 = z * z;
  const middle = (value + z2 / (2 * size)) / (1 + z2 / size);
  const half = Math.sqrt(z2 * ((value * (1 - value)) / size + z2 / (4 * size * size))) / (1 + z2 / size);
  return {
    value,
    low: value === 0 ? 0 : Math.max(0, middle - half),
    high: value === 1 ? 1 : Math.min(1, middle + half),
  };
}

// Quantile of the normal distribution by Newton's method, from the tail of its density.
function normalQuantile(level) {
  let z = DATA.z;
  for (let i = 0; i < 60; i += 1) {
    const step = (1 - level - upperTail(z)) / (Math.exp((-z * z) / 2) / Math.sqrt(2 * Math.PI));
    z -= Math.max(-0.5, Math.min(0.5, step));
    if (Math.abs(step) < 1e-10) break;
  }
  return z;
}

// Probability above z, for z of 0 and more: the continued fraction of the complementary error function.
function upperTail(z) {
  if (z < 2) {
    let term = z;
    let sum = z;
    for (let k = 1; k < 80; k += 1) {
      term *= (z * z) / (2 * k + 1);
      sum += term;
    }
    return 0.5 - (sum * Math.exp((-z * z) / 2)) / Math.sqrt(2 * Math.PI);
  }
  let fraction = z;
  for (let k = 60; k > 0; k -= 1) fraction = z + k / fraction;
  return Math.exp((-z * z) / 2) / (fraction * Math.sqrt(2 * Math.PI));
}

// Critical value for the lowest and the highest of several rates, which were selected by their values: that of Sidak or
// Tukey, for the pairs of groups that might have been the extreme ones.
function extremesZ(rates) {
  const values = rates.map((rate) => rate.value);
  const lowest = rates[values.indexOf(Math.min(...values))];
  const highest = rates[values.indexOf(Math.max(...values))];
  const mayBeLow = rates.map((rate) => rate.low <= lowest.high);
  const mayBeHigh = rates.map((rate) => rate.high >= highest.low);
  const count = (flags) => flags.filter(Boolean).length;
  const both = count(mayBeLow.map((flag, index) => flag && mayBeHigh[index]));
  const pairs = count(mayBeLow) * count(mayBeHigh) - (both * (both + 1)) / 2;
  if (pairs <= 1) return DATA.z;
  const confidence = 1 - 2 * upperTail(DATA.z);
  return Math.min(normalQuantile((1 + confidence ** (1 / pairs)) / 2), DATA.tukey[rates.length - 2]);
}

// Ratio of two shares, with the interval implied by theirs (Donner and Zou).
function ratioOf(one, other) {
  if (!(other.value > 0)) return { value: NaN, low: 0, high: Infinity };
  const value = one.value / other.value;
  const product = one.value * other.value;
  const below = product ** 2 - one.low * other.high * (2 * one.value - one.low) * (2 * other.value - other.high);
  const above = product ** 2 - one.high * other.low * (2 * one.value - one.high) * (2 * other.value - other.low);
  const bottomLow = other.high * (2 * other.value - other.high);
  const bottomHigh = other.low * (2 * other.value - other.low);
  const low = bottomLow > 0 ? (product - Math.sqrt(Math.max(below, 0))) / bottomLow : 0;
  const high = bottomHigh > 0 ? (product + Math.sqrt(Math.max(above, 0))) / bottomHigh : Infinity;
  return { value, low: Math.min(Math.max(low, 0), value), high: Math.max(high, value) };
}

// Mean distance between two of the chosen groups, computed on the bins of the page; or between their ranks.
function disparity(audit, amount, chosen) {
  const { bins } = audit;
  const pooled = new Float64Array(bins + 1);
  const functions = chosen.map((index) => {
    const group = audit.groups[index];
    const masses = new Float64Array(bins + 1);
    const scores = repaired(group, amount);
    for (let i = 0; i < scores.length; i += 1) {
      const node = Math.ceil(scores[i] * bins - SLACK * bins);
      for (const weights of group.masses) masses[node] += weights[i];
    }
    for (let k = 0; k <= bins; k += 1) pooled[k] += masses[k];
    let sum = 0;
    for (let k = 0; k < bins; k += 1) {
      sum += masses[k];
      masses[k] = sum / group.total;
    }
    return masses;
  });
  const here = new Float64Array(chosen.length);
  const people = pooled.reduce((sum, mass) => sum + mass, 0);
  // Of ranks, a bin counts by the share of people around it.
  const width = (k) => (DATA.ranks ? (pooled[k] + pooled[k + 1]) / (2 * people) : 1 / bins);
  let total = 0;
  for (let k = 0; k < bins; k += 1) {
    functions.forEach((values, index) => { here[index] = values[k]; });
    here.sort();
    let sum = 0;
    for (let i = 0; i < here.length; i += 1) sum += (2 * i - (here.length - 1)) * here[i];
    total += width(k) * sum;
  }
  return total / Math.max((chosen.length * (chosen.length - 1)) / 2, 1);
}

// All results of an audit at a threshold, in units of the scores, and an amount of repair; at a threshold of the audit,
// without repair, what the audit found.
function whatIf(audit, threshold, amount, chosen) {
  const asked = amount ? undefined : audit.asked.find((one) => one.threshold === threshold);
  const cut = nextNode(audit, toUnit(threshold));
  const { labelled } = DATA;
  let above = 0;
  let wrong = 0;
  let weight = 0;
  let rates = [];
  const errors = [];
  const groupRates = [];
  const everyone = { tn: 0, fp: 0, fn: 0, tp: 0 };
  for (const group of audit.groups) {
    const scores = repaired(group, amount);
    const inside = weightAbove(group, scores, cut);
    rates.push(wilson(inside / group.total, group.effective, DATA.z));
    above += inside;
    weight += group.total;
    if (labelled) {
      const mistaken = weightWrong(group, scores, cut);
      errors.push(mistaken / group.total);
      wrong += mistaken;
      const table = decisions(group, scores, cut);
      groupRates.push(errorRates(table, group.total / group.effective));
      for (const cell of Object.keys(everyone)) everyone[cell] += table[cell];
    }
  }
  if (audit.everyone) { // groups overlap, and a row counts once
    above = weightAbove(audit.everyone, audit.everyone.scores, cut);
    wrong = labelled ? weightWrong(audit.everyone, audit.everyone.scores, cut) : 0;
    weight = audit.everyone.total;
    if (labelled) Object.assign(everyone, decisions(audit.everyone, audit.everyone.scores, cut));
  }
  if (asked) rates = asked.rates;
  const enough = chosen.filter((index) => audit.groups[index].judged);
  const judged = enough.length >= 2 ? enough : chosen;
  let [lowest] = judged;
  let [highest] = judged;
  for (const index of judged) {
    if (rates[index].value < rates[lowest].value) lowest = index;
    if (rates[index].value > rates[highest].value) highest = index;
  }
  const all = chosen.length === N_SHOWN;
  const outcomes = HIGH_IS_FAVOURABLE ? rates : rates.map(complement);
  const z = judged.length > 1 ? extremesZ(judged.map((index) => rates[index])) : DATA.z;
  const extreme = (index) => {
    const rate = wilson(rates[index].value, audit.groups[index].effective, z);
    return HIGH_IS_FAVOURABLE ? rate : complement(rate);
  };
  const [worse, better] = HIGH_IS_FAVOURABLE ? [lowest, highest] : [highest, lowest];
  return {
    rates,
    outcomes,
    worse,
    better,
    errorRates: labelled ? groupRates : null,
    overallRates: labelled ? valuesOf(errorRates(everyone, 1)) : null,
    errors: labelled ? errors : null,
    overall: above / weight,
    error: labelled ? wrong / weight : null,
    lowest,
    highest,
    compared: judged.length,
    ...asked,
    gaps: all ? asked?.gaps : undefined,
    ratio: all && asked && Number.isFinite(asked.ratio.value) ? asked.ratio
      : judged.length ? ratioOf(extreme(worse), extreme(better)) : { value: NaN, low: 0, high: Infinity },
    get disparity() { // exact, as the audit computed it
      return all && !amount ? audit.disparity : disparity(audit, amount, judged);
    },
  };
}
