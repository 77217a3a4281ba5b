// The page's data: counts of scores at nodes, by group and label. Scores lie on [0, 1] here, whatever their range.

const DATA = JSON.parse(document.getElementById("data").textContent);
const [LOW, HIGH] = DATA.range;
const SLACK = 1e-9; // a score this little above a threshold is on it: what rounding makes

const toUnit = (value) => Math.min(1, Math.max(0, (value - LOW) / (HIGH - LOW)));
const fromUnit = (share) => LOW + share * (HIGH - LOW);

// Node k of the page is node floor(k * full / bins) of the full histogram.
const nodeScore = (audit, node) => Math.floor((node * audit.fullBins) / audit.bins) / audit.fullBins;

function decode(filled, audit) {
  const size = filled.at.length;
  const scores = new Float64Array(size);
  let node = 0;
  for (let i = 0; i < size; i += 1) {
    node += filled.at[i];
    scores[i] = nodeScore(audit, node);
  }
  const below = filled.masses.map(cumulate); // weight below the i-th filled node, by label
  return {
    scores,
    images: filled.images && Float64Array.from(filled.images),
    masses: filled.masses,
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

// What the reader has chosen.
const state = { threshold: DATA.threshold, amount: 0, chosen: GROUPS.map(() => true) };
const chosenPlaces = () => GROUPS.map((_, place) => place).filter((place) => state.chosen[place]);
