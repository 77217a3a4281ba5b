// Draw everything once, and again when the width changes.

document.documentElement.classList.add("scripted");
const charts = [...document.querySelectorAll(".chart")].map((figure) => new Chart(figure));
startControls();
for (const button of document.querySelectorAll("[data-save]")) {
  button.addEventListener("click", () => save(button.dataset.save));
}
updateLive();
if (document.querySelector("#live.long")) sortBy(document.querySelector('[data-sort="rate-0"]')); // the lowest first
for (const chart of charts) chart.draw();

let widths = "";
new ResizeObserver(() => {
  const now = charts.map((chart) => chart.plot.clientWidth).join();
  if (now !== widths) {
    widths = now;
    for (const chart of charts) chart.draw();
  }
}).observe(document.querySelector(".charts"));
