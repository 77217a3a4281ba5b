// Status of the stream (running, stalled, ended or lost), and the summary at the top of the page.

const MIN_STALL = 30; // seconds without a batch before the stream may count as stalled
const TIMEOUT = 15; // seconds without an event after which the connection counts as lost

// Usual seconds between two batches: the median of the latest gaps. A point may stand for several batches.
function usualGap(history) {
  const known = history.time.map((time, j) => [time, history.batch[j]]).filter(([time]) => isNumber(time)).slice(-50);
  const gaps = known.slice(1).map(([time, batch], j) => (time - known[j][0]) / Math.max(1, batch - known[j][1]));
  gaps.sort((one, other) => one - other);
  return gaps.length ? gaps[Math.floor(gaps.length / 2)] : 0;
}

// State of the stream, and its description, from the last snapshot received.
function streamState(data, link, now) {
  if (link.ended) return { state: "ended", word: "Ended", notice: `The stream has ended${link.message ? `: ${link.message}` : "."} This page shows its last state.` };
  if (link.lost || now - link.received > TIMEOUT) {
    return { state: "lost", word: "No connection", notice: "The stream does not respond: its program has stopped, or this machine was suspended. This page shows the last known state and reconnects automatically." };
  }
  if (!data) return { state: "starting", word: "Starting" };
  if (data.failed) return { state: "lost", word: "No figures", notice: "The stream responds, but without figures. See the messages of its program." };
  if (!data.batches) return { state: "starting", word: "Waiting for the first batch" };
  const idle = isNumber(data.updated) ? now - data.updated : now - link.changed;
  const gap = usualGap(data.history);
  if (idle > Math.max(MIN_STALL, 5 * gap)) {
    const rule = gap > 0 ? `; usually there is one every ${duration(gap)}` : "";
    return { state: "stalled", word: "Stalled", notice: `No new batch for ${duration(idle)}${rule}. The program is running, but no rows arrive.` };
  }
  return { state: "running", word: "Running" };
}

// Summary of the latest figures in one sentence, and its level.
function verdict(data) {
  const { history } = data;
  const last = history.batch.length - 1;
  if (last < 0) return { words: "Waiting for the first batch.", level: "none" };
  if (data.rows && data.rows_without_group === data.rows) {
    return { words: "No row has a known group: nothing is monitored, and the model is not adjusted.", level: "none" };
  }
  const disparity = history.disparity[last];
  const floor = history.noise_floor[last];
  if (!isNumber(disparity)) return { words: "The disparity is not known yet: there are too few rows of each group.", level: "none" };
  const words = [`The groups\u2019 scores are ${fixed(disparity)} apart`];
  if (!isNumber(floor)) words.push(".");
  else if (disparity <= floor) words.push(`, no more than the noise floor (${fixed(floor)}).`);
  else words.push(`, more than the noise floor (${fixed(floor)}).`);
  if (history.alarm[last]) words.push(" The latest batch raised an alarm.");
  const level = history.alarm[last] ? "alarm" : !isNumber(floor) ? "none" : disparity <= floor ? "within" : "above";
  return { words: words.join(""), level };
}

const SPOKEN = {
  alarm: "Alarm: the scores of a group have drifted.",
  within: "The disparity is within the noise floor.",
  above: "The disparity is above the noise floor.",
  none: "",
};

// Show the state from the last snapshot received, and the summary of the one that is drawn.
function showStatus(received, drawn, link, now) {
  const { state, word, notice } = streamState(received, link, now);
  const paused = link.paused && state === "running";
  document.querySelector(".state").dataset.state = paused ? "paused" : state;
  byId("state").textContent = paused ? "Page paused" : word + (received && received.frozen && state === "running" ? ", adjustment frozen" : "");
  byId("notice").hidden = !notice;
  if (notice && byId("notice").textContent !== notice) byId("notice").textContent = notice;
  if (received && !received.failed) byId("since").textContent = isNumber(received.updated) ? `Latest batch at ${clock(received.updated)}` : "";
  const summary = drawn && verdict(drawn);
  if (summary) byId("verdict").textContent = summary.words;
  // Announced when something changes, not at every batch.
  const key = `${state} ${summary ? summary.level : ""}`;
  if (key !== showStatus.spoken) {
    showStatus.spoken = key;
    byId("spoken").textContent = `${word}. ${summary ? SPOKEN[summary.level] : ""}`;
  }
}
