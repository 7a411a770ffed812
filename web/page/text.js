// The card that continues a text.

import { bytes, count, element } from "./words.js";

/** Most tokens of one run, after which it waits to be asked again. */
const LIMIT = 4000;

export class TextCard {
  constructor(link, complain) {
    this.link = link;
    this.complain = complain;
    this.ready = false;
    /** The prompt that the session has read; null for none. */
    this.read = null;
    this.running = false;
    this.given = element("given");
    this.written = element("written").appendChild(document.createTextNode(""));
    this.page = element("page");
    const on = (id, event, act) => element(id).addEventListener(event, act);
    on("go", "click", () => (this.running ? this.stop() : this.go()));
    on("anew", "click", () => this.anew());
    on("slowly", "change", () => this.link.call("pace", { slowly: this.slowly }));
    for (const dial of ["temperature", "top-k", "top-p"]) on(dial, "input", () => this.turned());
    on("prompt", "keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && !this.running) {
        event.preventDefault();
        this.go();
      }
    });
    document.addEventListener("keydown", (event) => event.key === "Escape" && this.running && this.stop());
    link.on("reading", ({ share }) => this.running && this.say(`Reading … ${Math.floor(100 * share)} %`));
    link.on("written", (data) => this.take(data));
    link.on("stopped", (data) => this.stopped(data));
    this.turned();
  }

  get slowly() {
    return element("slowly").checked;
  }

  get sampling() {
    const number = (id) => Number(element(id).value);
    const seed = Math.min(4294967295, Math.max(0, Math.floor(number("seed")) || 0));
    return { temperature: number("temperature"), topK: number("top-k"), topP: number("top-p"), seed };
  }

  /** Shows a model that was opened. */
  opened(model) {
    this.ready = true;
    const known = [`${count(model.parameters)} parameters`, bytes(model.size)];
    element("text-model").textContent = `${model.name}: ${known.join(", ")}`;
    element("memory").textContent = bytes(model.sessionBytes);
    const topK = element("top-k");
    topK.max = Math.min(100, model.outputs);
    this.turned();
    this.anew();
    element("go").disabled = false;
  }

  turned() {
    const { temperature, topK, topP } = this.sampling;
    element("temperature-value").textContent = temperature === 0 ? "off" : temperature.toFixed(2);
    element("top-k-value").textContent = topK === 0 ? "off" : String(topK);
    element("top-p-value").textContent = topP === 1 ? "off" : topP.toFixed(2);
    if (this.running) this.link.call("dial", this.sampling).catch((error) => this.complain(error));
  }

  async go() {
    if (!this.ready) return;
    const prompt = element("prompt").value;
    if (prompt === "") return this.say("Write something to begin with.");
    const fresh = prompt !== this.read;
    if (fresh) this.clear();
    // Until the new prompt has been read, no prompt counts as read.
    if (fresh) this.read = null;
    this.set(true);
    this.complain(null);
    this.say(fresh ? "Reading …" : "Writing …");
    try {
      if (!(await this.link.call("write", { prompt: fresh ? prompt : null, sampling: this.sampling, slowly: this.slowly, limit: LIMIT }))) return;
      this.read = prompt;
      this.given.textContent = prompt;
      this.say("Writing …");
    } catch (error) {
      this.set(false);
      this.say("");
      this.complain(error);
    }
  }

  stop() {
    this.link.call("stop");
  }

  anew() {
    if (this.running) this.stop();
    this.read = null;
    this.clear();
    this.say("");
  }

  clear() {
    this.tokens = 0;
    this.speed = null;
    this.given.textContent = "";
    this.written.data = "";
    element("count").textContent = "0";
    element("speed").textContent = "–";
  }

  take({ written, tokens, spent, bytes: held }) {
    if (this.read === null) return;
    const below = this.page.scrollHeight - this.page.scrollTop - this.page.clientHeight < 40;
    this.written.appendData(written);
    if (below) this.page.scrollTop = this.page.scrollHeight;
    this.tokens += tokens;
    // A coarse clock may show 0 for one token, so times are summed before dividing.
    const share = this.speed ?? { tokens: 0, spent: 0 };
    const keep = share.spent > 250 ? 0.9 : 1;
    this.speed = { tokens: share.tokens * keep + tokens, spent: share.spent * keep + spent };
    element("count").textContent = this.tokens.toLocaleString("en");
    element("memory").textContent = bytes(held);
    if (this.speed.spent > 1) element("speed").textContent = count(Math.round((1000 * this.speed.tokens) / this.speed.spent));
  }

  stopped({ done, error }) {
    this.set(false);
    if (error) this.complain(new Error(error));
    const from = this.read === null ? "Continue reads it from its beginning." : "Continue goes on from here.";
    this.say(done ? `Wrote ${LIMIT} tokens. ${from}` : `Stopped. ${from}`);
  }

  set(running) {
    this.running = running;
    element("go").textContent = running ? "Stop" : "Continue";
    element("anew").disabled = !this.ready;
    this.page.classList.toggle("writing", running);
  }

  say(sentence) {
    element("text-status").textContent = sentence;
  }
}
