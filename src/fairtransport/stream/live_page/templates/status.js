// How the stream is: running, stalled, ended or lost; and the sentence on top.

const PATIENCE = 30; // seconds without a batch that are nothing unusual
const HEARD = 15; // seconds without a word from the server after which contact is lost

// Seconds between two batches as a rule: the middle of the latest gaps. A point may stand for several batches.
function usualGap(history) {
  const known = history.time.map((time, j) => [time, history.batch[j]]).filter(([time]) => isNumber(time)).slice(-50);
  const gaps = known.slice(1).map(([time, batch], j) => (time - known[j][0]) / Math.max(1, batch - known[j][1]));
  gaps.sort((one, other) => one - other);
  return gaps.length ? gaps[Math.floor(gaps.length / 2)] : 0;
}

// The state, and how to say it, from what was last heard.
function standing(data, link, now) {
  if (link.ended) return { state: "ended", word: "Ended", notice: `The stream has ended${link.told ? `: ${link.told}` : "."} What you see is its last state.` };
  if (link.lost || now - link.heard > HEARD) {
    return { state: "lost", word: "No contact", notice: "The stream does not answer: its program has stopped, or this machine was asleep. What you see is the last state heard of; this page tries again by itself." };
  }
  if (!data) return { state: "starting", word: "Starting" };
  if (data.failed) return { state: "lost", word: "No figures", notice: "The stream answers, but cannot give its figures. Its own messages say more." };
  if (!data.batches) return { state: "starting", word: "Waiting for the first batch" };
  const quiet = isNumber(data.updated) ? now - data.updated : now - link.changed;
  const gap = usualGap(data.history);
  if (quiet > Math.max(PATIENCE, 5 * gap)) {
    const rule = gap > 0 ? `, as a rule there is one every ${duration(gap)}` : "";
    return { state: "stalled", word: "Stalled", notice: `No new batch for ${duration(quiet)}${rule}. The program runs, but no rows arrive.` };
  }
  return { state: "running", word: "Running" };
}

// The latest figures in a sentence, and how serious it is.
function verdict(data) {
  const { history } = data;
  const last = history.batch.length - 1;
  if (last < 0) return { words: "Waiting for the first batch.", level: "none" };
  const apart = history.disparity[last];
  const floor = history.noise_floor[last];
  if (!isNumber(apart)) return { words: "No disparity can be told yet: there are too few rows of each group.", level: "none" };
  const words = [`The groups\u2019 scores are ${fixed(apart)} apart`];
  if (!isNumber(floor)) words.push(".");
  else if (apart <= floor) words.push(`, no more than chance alone would show (${fixed(floor)}).`);
  else words.push(`, more than chance alone would show (${fixed(floor)}).`);
  if (history.alarm[last]) words.push(" The latest batch raised an alarm.");
  const level = history.alarm[last] ? "alarm" : !isNumber(floor) ? "none" : apart <= floor ? "within" : "above";
  return { words: words.join(""), level };
}

const SPOKEN = {
  alarm: "Alarm: the disparity of the groups has changed.",
  within: "The disparity is within the noise floor.",
  above: "The disparity is above the noise floor.",
  none: "",
};

// State of the stream from what was last heard; the sentence from what is drawn.
function showStatus(heard, drawn, link, now) {
  const { state, word, notice } = standing(heard, link, now);
  const paused = link.paused && state === "running";
  document.querySelector(".state").dataset.state = paused ? "paused" : state;
  byId("state").textContent = paused ? "Page paused" : word + (heard && heard.frozen && state === "running" ? ", adjustment frozen" : "");
  byId("notice").hidden = !notice;
  if (notice && byId("notice").textContent !== notice) byId("notice").textContent = notice;
  if (heard && !heard.failed) byId("since").textContent = isNumber(heard.updated) ? `Latest batch at ${clock(heard.updated)}` : "";
  const told = drawn && verdict(drawn);
  if (told) byId("verdict").textContent = told.words;
  // Spoken when something changes, not at every batch.
  const key = `${state} ${told ? told.level : ""}`;
  if (key !== showStatus.spoken) {
    showStatus.spoken = key;
    byId("spoken").textContent = `${word}. ${told ? SPOKEN[told.level] : ""}`;
  }
}
