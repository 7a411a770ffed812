// The page: two cards over one worker, and files that are opened or dropped.

import { Link } from "./link.js";
import { StreamCard } from "./stream.js";
import { TextCard } from "./text.js";
import { element } from "./words.js";

const EXAMPLES = {
  sensors: { model: "models/sensors.minrnn", rate: "32" },
  temperature: { model: "models/temperature.minrnn", table: "models/temperature.csv", rate: "8" },
};

/** How a model begins, and the bytes before its header. */
const MAGIC = [0x89, ...new TextEncoder().encode("minrnn\n")];
const FRAME = 24;

const link = new Link("worker.js");

/** Shows what went wrong, or nothing. */
function complain(error) {
  notice(error ? error.message : "", false);
}

function notice(sentence, good) {
  const box = element("notice");
  box.hidden = sentence === "";
  box.textContent = sentence;
  box.classList.toggle("good", good);
  if (sentence && !good) box.scrollIntoView({ block: "nearest" });
}

const cards = { text: new TextCard(link, complain), stream: new StreamCard(link, complain) };

async function fetched(path) {
  const response = await fetch(path);
  if (!response.ok) throw new Error(`The page lacks its file ${path} (${response.status}); build it again with web/build.sh.`);
  return response;
}

async function open(name, buffer, table) {
  const model = await link.call("open", { name, bytes: new Uint8Array(buffer) }, [buffer]);
  cards[model.place].opened(model, table);
  return model;
}

async function example(key) {
  notice("", true);
  const { model, table, rate } = EXAMPLES[key];
  const [bytes, text] = await Promise.all([fetched(model).then((r) => r.arrayBuffer()), table ? fetched(table).then((r) => r.text()) : null]);
  element("rate").value = rate;
  await open(model.split("/").at(-1), bytes, text === null ? undefined : { text, name: table.split("/").at(-1) });
  pressed(key);
}

function pressed(key) {
  for (const button of element("examples").children) button.setAttribute("aria-pressed", String(button.dataset.example === key));
}

/** Files of the user's: models go to the card of their kind, tables to the stream. */
async function take(files) {
  // Models first: a table that comes with a model is for that model.
  const sorted = [...files].sort((a, b) => isTable(a) - isTable(b));
  for (const file of sorted) {
    notice(`Opening ${file.name} …`, true);
    try {
      if (isTable(file)) {
        if (!cards.stream.model) throw new Error("There is no model of streams yet that could read the table.");
        cards.stream.feed({ text: await file.text(), name: file.name });
        notice(`${file.name} feeds ${cards.stream.model.name}.`, true);
      } else {
        const { place } = await open(file.name, await content(file));
        if (place === "stream") pressed(null);
        notice(`${file.name} is open: it ${place === "text" ? "continues a text" : "follows a stream"}.`, true);
      }
    } catch (error) {
      return complain(new Error(`${file.name}: ${error.message}`));
    }
  }
}

const isTable = (file) => /\.(csv|tsv|txt)$/i.test(file.name);

/** The whole of a file that begins like a model; of any other file, which may be larger than memory, only the beginning, by which the module refuses it. */
async function content(file) {
  const beginning = await file.slice(0, FRAME).arrayBuffer();
  const signs = new Uint8Array(beginning);
  return MAGIC.every((sign, at) => signs[at] === sign) ? file.arrayBuffer() : beginning;
}

element("open").addEventListener("click", () => element("file").click());
element("file").addEventListener("change", ({ target }) => {
  take(target.files).then(() => (target.value = ""));
});
for (const button of element("examples").children) button.addEventListener("click", () => example(button.dataset.example).catch(complain));

const veil = element("drop");
const carriesFiles = (event) => event.dataTransfer?.types.includes("Files");
addEventListener("dragover", (event) => {
  if (!carriesFiles(event)) return;
  event.preventDefault();
  veil.hidden = false;
});
addEventListener("dragleave", (event) => {
  if (event.relatedTarget === null) veil.hidden = true;
});
addEventListener("drop", (event) => {
  veil.hidden = true;
  if (!carriesFiles(event)) return;
  event.preventDefault();
  take(event.dataTransfer.files);
});

async function begin() {
  if (location.protocol === "file:") throw new Error("Browsers do not run modules of files opened from disk: serve the folder, for example with `python3 -m http.server`, and open http://localhost:8000.");
  const shakespeare = await fetched("models/shakespeare.minrnn");
  await Promise.all([shakespeare.arrayBuffer().then((bytes) => open("shakespeare.minrnn", bytes)), example("sensors")]);
}

begin().catch(complain);
