// Entry point: subscribe to the events of the stream, and draw each snapshot unless the page is paused.

const seconds = () => Date.now() / 1000;
const charts = [...document.querySelectorAll(".chart")].map((figure) => new Chart(figure));
const link = { received: seconds(), changed: seconds(), lost: false, ended: false, message: "", paused: false };
let latest = null; // last snapshot received
let drawn = null; // last snapshot drawn

function draw() {
  const fresh = latest && !latest.failed && !link.paused && latest !== drawn && !document.hidden;
  if (fresh) drawn = latest;
  showStatus(latest, drawn, link, seconds());
  if (!fresh) return;
  document.title = `${drawn.title}: live page`;
  byId("title").replaceChildren(Object.assign(document.createElement("bdi"), { textContent: drawn.title }));
  showCards(drawn);
  showGroups(drawn);
  showBatches(drawn);
  for (const chart of charts) chart.draw(drawn);
}

function listen() {
  const source = new EventSource("events");
  const received = () => { link.received = seconds(); link.lost = false; };
  source.addEventListener("open", received);
  source.addEventListener("alive", () => { received(); draw(); });
  source.addEventListener("snapshot", (event) => {
    received();
    latest = JSON.parse(event.data);
    link.changed = seconds();
    draw();
  });
  source.addEventListener("end", (event) => {
    source.close();
    link.ended = true;
    link.message = JSON.parse(event.data).message;
    draw();
  });
  source.addEventListener("error", () => {
    link.lost = true;
    if (source.readyState === EventSource.CLOSED) setTimeout(listen, 5000); // refused, because too many pages are open
    draw();
  });
}

byId("pause").addEventListener("click", () => {
  link.paused = !link.paused;
  byId("pause").setAttribute("aria-pressed", String(link.paused));
  draw();
});
document.addEventListener("visibilitychange", draw);
const legend = byId("disparity-legend");
for (const [kind, name] of [["curve plain", "Disparity"], ["floor", "Noise floor"], ["sign", "Alarm"]]) {
  const item = addHtml(legend, "li");
  const svg = add(item, "svg", { class: "swatch", viewBox: "0 0 28 8", focusable: "false" });
  add(svg, "path", { class: kind, d: { "curve plain": "M1 4H27", floor: "M0 0H28V8H0Z", sign: "M8 -1h12l-6 10Z" }[kind] });
  addHtml(item, "span", "", name);
}
setInterval(draw, 1000);
listen();

let widths = "";
new ResizeObserver(() => {
  const now = charts.map((chart) => chart.plot.clientWidth).join();
  if (now === widths) return;
  widths = now;
  if (drawn) for (const chart of charts) chart.draw(drawn);
}).observe(document.body);
