// Uploads of files with progress, which go on where they were broken off. Without this script, the
// form sends the file as a whole.
import { Sha256 } from "./sha256.js";

const form = document.querySelector("form[data-upload]");
const file = form.querySelector("input[type=file]");
const progress = form.querySelector("progress");
const state = form.querySelector("[role=status]");
// What this script tells, in the language of the page.
const say = form.dataset;
const cancel = form.querySelector("button[type=button]");
// What is sent again is one change, as long as it is the same file.
let key;
let isBusy = false;
let stopped = new AbortController();

function show(text, share) {
  progress.hidden = cancel.hidden = share === undefined;
  if (share !== undefined) progress.value = share;
  state.textContent = text;
}

// Sends fields of this form to a page of the dashboard, which answers JSON.
async function ask(address, fields) {
  const token = form.elements.formToken.value;
  const body = new URLSearchParams({ formToken: token, formKey: key, ...fields });
  const answer = await fetch(address, { method: "POST", body, signal: stopped.signal });
  const json = await answer.json().catch(() => ({ error: say.signIn }));
  if (!answer.ok || json.error) throw new Error(json.error);
  return json;
}

async function hashed(chosen, part) {
  const hash = new Sha256();
  for (let at = 0; at < chosen.size; at += part) {
    stopped.signal.throwIfAborted();
    hash.update(new Uint8Array(await chosen.slice(at, at + part).arrayBuffer()));
    show(say.reading, (at / chosen.size) * 0.1);
  }
  return hash.hex();
}

// Sends the bytes from `at` on. A broken connection is tried again from where the service is.
async function send(chosen, { uploadUrl, offset, partSize }) {
  for (let at = offset, failures = 0; at < chosen.size; ) {
    const end = Math.min(at + partSize, chosen.size);
    show(say.sending.replace("\uFFFC", Math.floor((at / chosen.size) * 100)), 0.1 + (at / chosen.size) * 0.85);
    try {
      const headers = { "Content-Range": `bytes ${at}-${end - 1}/${chosen.size}` };
      const answer = await fetch(uploadUrl, { method: "PUT", headers, body: chosen.slice(at, end), signal: stopped.signal });
      if (!answer.ok && answer.status < 500 && answer.status !== 409) throw new Refusal((await answer.json()).error);
      if (!answer.ok) throw new Error();
      [at, failures] = [end, 0];
    } catch (error) {
      stopped.signal.throwIfAborted();
      if (error instanceof Refusal || ++failures > 8) throw error;
      show(say.again, 0.1 + (at / chosen.size) * 0.85);
      await new Promise((go) => setTimeout(go, 2 ** failures * 250));
      const head = await fetch(uploadUrl, { method: "HEAD", signal: stopped.signal }).catch(() => undefined);
      if (head?.ok) at = Number(head.headers.get("Upload-Offset"));
    }
  }
}

class Refusal extends Error {}

async function upload(chosen) {
  if (isBusy) return;
  isBusy = true;
  key = `${form.elements.formKey.value}-${chosen.name}-${chosen.size}`.slice(0, 200);
  stopped = new AbortController();
  try {
    const sha256 = await hashed(chosen, 8 << 20);
    const fields = { fileName: chosen.name, size: chosen.size, sha256 };
    const opened = await ask(`${form.action}/open`, fields);
    if (opened.uploadUrl) await send(chosen, opened);
    show(say.verifying, 0.97);
    await ask(`/artifacts/${opened.artifactId}/finalize`, { sha256 });
    location.assign(`/artifacts/${opened.artifactId}`);
  } catch (error) {
    show(stopped.signal.aborted ? say.stopped : error.message || say.failed);
    for (const button of form.querySelectorAll("button")) button.disabled = false;
    file.value = "";
  } finally {
    isBusy = false;
  }
}

// What is chosen is sent at once, so the button has nothing to do. Its place stays, so that nothing moves.
form.querySelector("button:not([type])").style.visibility = "hidden";
file.addEventListener("change", () => file.files[0] && upload(file.files[0]));
form.addEventListener("submit", (event) => {
  event.preventDefault();
  if (file.files[0]) upload(file.files[0]);
});
cancel.addEventListener("click", () => stopped.abort());
for (const kind of ["dragenter", "dragover", "dragleave", "drop"]) {
  form.addEventListener(kind, (event) => {
    event.preventDefault();
    form.classList.toggle("over", kind === "dragenter" || kind === "dragover");
  });
}
form.addEventListener("drop", ({ dataTransfer }) => {
  if (!dataTransfer.files[0]) return;
  file.files = dataTransfer.files;
  upload(dataTransfer.files[0]);
});
