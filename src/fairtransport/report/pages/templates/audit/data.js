// Data of the page: counts of scores at nodes, by group and label. Scores lie on [0, 1] here, whatever their range.

const DATA = JSON.parse(document.getElementById("data").textContent);
const [LOW, HIGH] = DATA.range;
const SLACK = 1e-9; // rounding error by which a score may exceed a threshold that it equals

const toUnit = (value) => Math.min(1, Math.max(0, (value - LOW) / (HIGH - LOW)));
const fromUnit = (share) => LOW + share * (HIGH - LOW);

// Node k of the page is node floor(k * full / bins) of the full histogram.
const nodeScore = (audit, node) => Math.floor((node * audit.fullBins) / audit.bins) / audit.fullBins;

function decode(group, audit) {
  const size = group.at.length;
  const scores = new Float64Array(size);
  let node = 0;
  for (let i = 0; i < size; i += 1) {
    node += group.at[i];
    scores[i] = nodeScore(audit, node);
  }
  const below = group.masses.map(cumulate); // weight below the i-th node, by label
  return {
    scores,
    images: group.images && Float64Array.from(group.images),
    masses: group.masses,
    below,
    total: below.reduce((sum, one) => sum + one[size], 0),
  };
}

function cumulate(masses) {
  const sums = new Float64Array(masses.length + 1);
  for (let i = 0; i < masses.length; i += 1) sums[i + 1] = sums[i] + masses[i];
  return sums;
}

const GROUPS = DATA.groups;
const AUDITS = DATA.audits.map((audit) => ({
  ...audit,
  groups: audit.groups.map((group) => ({ ...group, ...decode(group, audit) })),
  everyone: audit.everyone && decode(audit.everyone, audit),
}));
const REPAIRABLE = AUDITS.length === 1 && AUDITS[0].groups.every((group) => group.images);

// Choices of the reader.
const state = { threshold: DATA.threshold, amount: 0, chosen: GROUPS.map((group) => !group.withheld) };
const N_SHOWN = GROUPS.filter((group) => !group.withheld).length; // the figures of the others are withheld
const chosenIndices = () => GROUPS.map((_, index) => index).filter((index) => state.chosen[index]);
