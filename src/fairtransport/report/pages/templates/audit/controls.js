// Sliders, number fields and checkboxes.

let waiting = false;

function refresh() {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => {
    waiting = false;
    updateLive();
    for (const chart of charts) chart.draw();
  });
}

function setThreshold(value, from = null) {
  if (!Number.isFinite(value)) return;
  state.threshold = Math.min(HIGH, Math.max(LOW, value));
  const slider = document.getElementById("threshold");
  const number = document.getElementById("threshold-number");
  if (from !== slider) slider.value = state.threshold;
  if (from !== number) number.value = Number(state.threshold.toFixed(DIGITS + 3));
  slider.setAttribute("aria-valuetext", scoreText(state.threshold));
  refresh();
}

function setAmount(percents, from = null) {
  if (!Number.isFinite(percents)) return;
  state.amount = Math.min(100, Math.max(0, percents)) / 100;
  const slider = document.getElementById("amount");
  const number = document.getElementById("amount-number");
  const shown = Number((100 * state.amount).toFixed(2));
  if (from !== slider) slider.value = shown;
  if (from !== number) number.value = shown;
  slider.setAttribute("aria-valuetext", `${shown} percent`);
  refresh();
}

function bind(id, set) {
  for (const element of [document.getElementById(id), document.getElementById(`${id}-number`)]) {
    element.addEventListener("input", () => { if (element.value !== "") set(Number(element.value), element); });
  }
  const number = document.getElementById(`${id}-number`);
  number.addEventListener("change", () => set(id === "threshold" ? state.threshold : 100 * state.amount));
}

function choose(which) {
  const boxes = [...document.querySelectorAll("#chips .chip input")];
  for (const box of boxes) {
    const index = Number(box.value);
    box.checked = !box.disabled && (which === "all" || (which === "named" && GROUPS[index].named));
    state.chosen[index] = box.checked;
  }
  refresh();
}

// Highlight the line of the group under the mouse, or with the focus.
function lightLines(root, groupOf) {
  const light = (index) => { for (const chart of charts) chart.light(index); };
  for (const [on, off] of [["pointerover", "pointerout"], ["focusin", "focusout"]]) {
    root.addEventListener(on, (event) => light(groupOf(event.target)));
    root.addEventListener(off, () => light(null));
  }
}

function startControls() {
  lightLines(document.getElementById("chips"), (target) => {
    const box = target.closest(".chip")?.querySelector("input");
    return box ? Number(box.value) : null;
  });
  lightLines(document.querySelector("#live tbody"), (target) => Number(target.closest("tr").dataset.group));
  for (const button of document.querySelectorAll(".more")) {
    button.addEventListener("click", () => {
      const open = button.closest("section").querySelector("table").classList.toggle("open");
      button.setAttribute("aria-expanded", String(open));
      button.textContent = open ? "Show fewer" : button.dataset.all;
    });
    button.dataset.all = button.textContent;
  }
  bind("threshold", setThreshold);
  if (REPAIRABLE) bind("amount", setAmount);
  document.getElementById("panel").addEventListener("submit", (event) => event.preventDefault());
  document.getElementById("panel").addEventListener("reset", (event) => {
    event.preventDefault();
    setThreshold(DATA.threshold);
    if (REPAIRABLE) setAmount(0);
  });
  document.getElementById("chips").addEventListener("change", (event) => {
    if (event.target.type !== "checkbox") return;
    state.chosen[Number(event.target.value)] = event.target.checked;
    refresh();
  });
  for (const button of document.querySelectorAll("[data-choose]")) {
    button.addEventListener("click", () => choose(button.dataset.choose));
  }
  const filter = document.getElementById("filter");
  if (filter) {
    filter.addEventListener("input", () => {
      const searched = filter.value.toLowerCase();
      document.querySelectorAll("#chips .chip").forEach((chip, index) => {
        chip.hidden = !GROUPS[index].name.toLowerCase().includes(searched);
      });
    });
  }
  for (const head of document.querySelectorAll("#live thead th[data-sort]")) {
    head.querySelector("button").addEventListener("click", () => sortBy(head));
  }
}
