// Cards, legends and tables.

const MAX_BATCHES = 12;

function cards(data) {
  const { history, spent } = data;
  const last = history.batch.length - 1;
  const alarms = history.alarm.reduce((sum, one) => sum + one, 0);
  const latest = history.alarm.lastIndexOf(1);
  const rate = isNumber(data.alarm_rate) && data.alarm_rate > 0
    ? `False alarms: at most one in ${thousands(1 / data.alarm_rate)} batches` : "";
  return [
    ["disparity", "Disparity", fixed(history.disparity[last]), `Noise floor ${fixed(history.noise_floor[last])}`],
    ["alarms", "Alarms", thousands(alarms), `${latest < 0 ? `None in ${thousands(data.batches)} batches` : `Latest at batch ${thousands(history.batch[latest])}`}. ${rate}`],
    ["rows", "Rows", thousands(data.rows), `${thousands(data.batches)} batches, ${thousands(data.rejected)} lines rejected${data.rows_without_group ? `, ${thousands(data.rows_without_group)} rows without a known group` : ""}`],
    ["agreement", "Agreement", percent(history.agreement[last]), "With the original model"],
    ["spent", "Updates", thousands(spent.updates), `${isNumber(spent.seconds) ? duration(spent.seconds) : "\u2013"} in ${thousands(spent.batches_adjusted)} of ${thousands(data.batches)} batches${spent.skipped_updates ? `; ${thousands(spent.skipped_updates)} not taken` : ""}`],
    ["version", "Model version", isNumber(data.version) ? String(data.version) : "\u2013", `Distance ${short(history.moved[last])}${data.frozen ? ", frozen" : ""}`],
  ];
}

function showCards(data) {
  const list = byId("cards");
  for (const [key, name, value, more] of cards(data)) {
    let card = list.querySelector(`[data-card="${key}"]`);
    if (!card) {
      card = addHtml(list, "div");
      card.dataset.card = key;
      addHtml(card, "dt", "", name);
      const dd = addHtml(card, "dd");
      addHtml(dd, "strong");
      addHtml(dd, "span");
    }
    card.querySelector("strong").textContent = value;
    card.querySelector("span").textContent = more;
  }
}

// Mean score of a histogram, at the middles of its bins.
function meanOf(shares, edges) {
  if (!shares) return null;
  const whole = shares.reduce((sum, one) => sum + one, 0);
  return whole > 0 ? shares.reduce((sum, one, j) => sum + (one * (edges[j] + edges[j + 1])) / 2, 0) / whole : null;
}

// Area between two cumulative histograms: Wasserstein-1, as fine as the bins.
function distanceOf(shares, target, edges) {
  if (!shares || !target) return null;
  const [one, other] = [shares, target].map((list) => list.reduce((sum, value) => sum + value, 0));
  if (!(one > 0) || !(other > 0)) return null;
  let gap = 0;
  let area = 0;
  shares.forEach((share, j) => {
    const next = gap + share / one - target[j] / other;
    const width = edges[j + 1] - edges[j]; // linear inside a bin: a triangle on either side where the sign changes
    area += gap * next >= 0 ? (width * Math.abs(gap + next)) / 2 : (width * (gap * gap + next * next)) / (2 * Math.abs(next - gap));
    gap = next;
  });
  return area;
}

function showGroups(data) {
  const legend = byId("group-legend");
  const body = document.querySelector("#groups tbody");
  const key = JSON.stringify([data.groups, data.styles]);
  if (key !== showGroups.key) {
    showGroups.key = key;
    legend.replaceChildren();
    body.replaceChildren();
    data.groups.forEach((name, index) => {
      if (data.styles[index].named) addName(addHtml(legend, "li"), data.styles[index], name);
      const row = addHtml(body, "tr");
      const head = addHtml(row, "th");
      head.scope = "row";
      addName(head, data.styles[index], name);
      for (let column = 0; column < 3; column += 1) addHtml(row, "td");
    });
    body.closest(".scroll").classList.toggle("long", data.groups.length > 15);
    const others = data.styles.filter((style) => !style.named);
    if (others.length) addName(addHtml(legend, "li"), others[0], `${others.length} smaller groups`);
  }
  const { name: word, shares } = reference(data);
  for (const element of document.querySelectorAll("[data-reference]")) element.textContent = word;
  data.groups.forEach((_, index) => {
    const cells = body.rows[index].cells;
    cells[1].textContent = thousands(data.sizes[index]);
    cells[2].textContent = fixed(meanOf(data.histograms[index], data.edges));
    cells[3].textContent = fixed(distanceOf(data.histograms[index], shares, data.edges));
  });
}

function showBatches(data) {
  const { history } = data;
  const body = document.querySelector("#batches tbody");
  const last = history.batch.length - 1;
  const rows = [];
  for (let j = last; j >= Math.max(0, last - MAX_BATCHES + 1); j -= 1) {
    const row = document.createElement("tr");
    const head = addHtml(row, "th", "", thousands(history.batch[j]));
    head.scope = "row";
    addHtml(row, "td", "wide", clock(history.time[j]));
    addHtml(row, "td", "", fixed(history.disparity[j]));
    addHtml(row, "td", "", fixed(history.noise_floor[j]));
    addHtml(row, "td", history.alarm[j] ? "alarmed" : "", history.alarm[j] ? "alarm" : "");
    addHtml(row, "td", "", thousands(history.updates[j]));
    addHtml(row, "td", "wide", short(history.moved[j]));
    addHtml(row, "td", "", percent(history.agreement[j]));
    rows.push(row);
  }
  body.replaceChildren(...rows);
}
