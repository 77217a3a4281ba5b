// Progress: every open page of a project asks for the same job, so that reloads and second windows go on with it.
let saving = Promise.resolve();
const job = document.getElementById("job");
if (job) {
  const text = document.getElementById("job-text"), bar = job.querySelector("progress");
  (async function ask() {
    const now = await fetch(job.dataset.job).then((answer) => answer.json()).catch(() => ({ running: true, text: job.dataset.ended }));
    if (!now.running) { document.activeElement?.blur(); await saving; location.reload(); return; }
    if (now.text && text.textContent !== now.text) text.textContent = now.text;
    if (now.share !== undefined) bar.value = now.share;
    setTimeout(ask, now.share === undefined ? 2000 : 100);
  })();
}
// Settings are kept as they are typed.
for (const form of document.querySelectorAll("form.settings")) {
  const training = form.querySelector("#training") || {};
  const show = () => { training.hidden = new FormData(form).get("action") === "repair"; };
  form.addEventListener("change", () => {
    show();
    const typed = new URLSearchParams([...new FormData(form), ["save", "1"]]);
    saving = fetch(location.pathname, { method: "POST", body: typed }).catch(() => {});
  });
  show();
}
document.querySelector("[aria-invalid], fieldset[aria-describedby] input:not([type=hidden])")?.focus();
for (const button of document.querySelectorAll("button.copy")) {
  button.addEventListener("click", async () => {
    const code = button.previousElementSibling;
    try { await navigator.clipboard.writeText(code.textContent.trimEnd()); } catch { getSelection().selectAllChildren(code); document.execCommand("copy"); }
    button.textContent = button.dataset.copied;
  });
}
const upload = document.getElementById("upload");
if (upload) {
  const input = upload.querySelector("input"), error = document.getElementById("upload-error");
  const send = async (file) => {
    if (!file) return;
    error.hidden = true;
    upload.setAttribute("aria-busy", "true");
    const answer = await fetch(`/upload?name=${encodeURIComponent(file.name)}`, { method: "POST", body: file }).then((one) => one.json()).catch(() => ({}));
    upload.removeAttribute("aria-busy");
    if (answer.go) { location.href = answer.go; return; }
    error.textContent = answer.error || upload.dataset.failed;
    error.hidden = false;
    input.value = "";
  };
  input.addEventListener("change", () => send(input.files[0]));
  for (const [name, over] of [["dragover", true], ["dragleave", false], ["drop", false]]) {
    upload.addEventListener(name, (event) => {
      event.preventDefault();
      upload.classList.toggle("over", over);
      if (name === "drop") send(event.dataTransfer.files[0]);
    });
  }
}
