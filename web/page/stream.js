// The card that follows a stream of numbers: rows arrive at a set rate, and the model's predictions move along with them.

import { Plot } from "./plot.js";
import { MOVEMENTS, Signal } from "./signal.js";
import { readTable } from "./table.js";
import { bytes, count, element, value } from "./words.js";

/** Number of rows that the picture has room for. */
const SPAN = 160;

export class StreamCard {
  constructor(link, complain) {
    this.link = link;
    this.complain = complain;
    this.plot = new Plot(element("plot"));
    this.model = null;
    this.playing = !matchMedia("(prefers-reduced-motion: reduce)").matches;
    this.busy = false;
    this.owed = 0;
    element("play").addEventListener("click", () => this.play(!this.playing));
    element("restart").addEventListener("click", () => this.forget());
    let before = performance.now();
    const frame = (now) => {
      // After a pause in the background only a moment is caught up.
      const passed = Math.min(0.25, (now - before) / 1000);
      before = now;
      if (this.playing && this.source) this.advance(passed);
      requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
  }

  /** Shows a model that was opened, and gives it rows: those of a table as text, or simulated ones if there is none. */
  opened(model, table) {
    this.model = model;
    const known = [`${count(model.parameters)} parameters`, bytes(model.size)];
    element("stream-model").textContent = `${model.name}: ${known.join(", ")}`;
    element("stream-memory").textContent = bytes(model.sessionBytes);
    element("play").disabled = element("restart").disabled = false;
    this.source = null;
    this.clear();
    this.bars();
    this.movements();
    if (table) this.feed(table);
    else if (this.isMovement) this.source = new Signal();
    else this.say(`Open a table (.csv) with ${this.columns.map((name) => `'${name}'`).join(", ") || "its columns"} to feed the model.`);
    this.play(this.playing);
  }

  get columns() {
    return this.model.table?.columns ?? Array.from({ length: this.model.reads.width }, (_, i) => `x${i}`);
  }

  /** Whether the model classifies the movements that the simulated sensor makes. */
  get isMovement() {
    const { table } = this.model;
    return table?.task === "classify" && table.columns.length === 1 && table.classes.every((name) => name in MOVEMENTS);
  }

  /** Feeds the rows of a table, again and again. */
  feed({ text, name }) {
    const { rows, starts } = readTable(text, this.columns, this.model.table?.group);
    let at = -1;
    this.source = {
      /** Whether the row that was last given begins a new sequence. */
      begins: false,
      next() {
        this.begins = at >= 0;
        at = (at + 1) % rows.length;
        this.begins &&= starts.has(at);
        return rows[at];
      },
    };
    element("movements").replaceChildren();
    this.clear();
    this.link.call("forget");
    this.say(`Reading ${name}: ${rows.length.toLocaleString("en")} rows, again and again.`);
    this.play(true);
  }

  play(playing) {
    this.playing = playing;
    element("play").textContent = playing ? "Pause" : "Play";
  }

  forget() {
    const { first } = this;
    this.clear();
    this.first = first;
    this.link.call("forget");
    this.say("The model has forgotten the stream; it begins anew.");
  }

  clear() {
    [this.rows, this.shares, this.read, this.owed] = [[], [], 0, 0];
    /** The first row of a sequence, held back until the rows of the previous one have been read. */
    this.first = null;
    /** Identifies the stream: answers for an earlier one are dropped. */
    this.stream = {};
    this.spent = null;
    this.plot.range = null;
    element("rows").textContent = "0";
    element("cost").textContent = "–";
  }

  /** Rows that are due, all of one sequence, and whether they begin it. */
  due() {
    const rows = this.first === null ? [] : [this.first];
    let begins = this.first !== null;
    this.first = null;
    while (rows.length + 1 <= this.owed) {
      const row = this.source.next();
      if (this.source.begins && rows.length) {
        this.first = row;
        break;
      }
      begins ||= Boolean(this.source.begins);
      rows.push(row);
    }
    this.owed -= rows.length;
    return { rows, begins };
  }

  /** Sends the rows that are due after `passed` seconds to the model together. */
  async advance(passed) {
    this.owed = Math.min(30, this.owed + passed * Number(element("rate").value));
    if (this.busy || this.owed < 1) return;
    this.busy = true;
    try {
      const { model, stream } = this;
      const { rows, begins } = this.due();
      const read = await this.link.call("rows", { rows, begins, of: model.of });
      if (read && stream === this.stream) {
        if (begins) [this.rows, this.shares] = [[], []];
        element("stream-memory").textContent = bytes(read.bytes);
        this.show(rows, read.predictions, read.cost);
      }
    } catch (error) {
      this.play(false);
      this.complain(error);
    }
    this.busy = false;
  }

  show(rows, predictions, cost) {
    this.rows = this.rows.concat(rows).slice(-SPAN);
    this.read += rows.length;
    this.spent = this.spent === null ? cost : 0.95 * this.spent + 0.05 * cost;
    const last = predictions.at(-1);
    const picture = { rows: this.rows, span: SPAN };
    if (this.model.kind === "classifier") {
      this.shares = this.shares.concat(predictions.map((shares) => Array.from(shares))).slice(-SPAN);
      this.showClasses(last);
      picture.shares = this.shares;
    } else if (this.model.kind === "forecaster") {
      picture.ahead = this.forecast(last);
      picture.span = Math.min(SPAN, Math.max(48, 8 * picture.ahead.middle.length));
      picture.rows = this.rows.slice(-picture.span);
      this.showForecast(picture.ahead);
    } else {
      last.slice(0, 12).forEach((number, i) => this.fill(i, value(number), 0));
    }
    this.plot.draw(picture);
    element("rows").textContent = this.read.toLocaleString("en");
    element("cost").textContent = String(Math.max(1, Math.round(1000 * this.spent)));
  }

  /** The first forecast column: its middle, and the band between the outermost quantiles. */
  forecast(values) {
    const { table } = this.model;
    const quantiles = Math.max(1, table.quantiles.length);
    const step = table.target.length * quantiles;
    const middleAt = Math.max(0, table.quantiles.indexOf(0.5));
    const steps = Array.from({ length: table.horizon }, (_, h) => values.slice(h * step, h * step + quantiles));
    return {
      column: Math.max(0, table.columns.indexOf(table.target[0])),
      middle: steps.map((step) => step[middleAt]),
      band: steps.map((step) => [step[0], step[quantiles - 1]]),
    };
  }

  showClasses(shares) {
    const best = shares.indexOf(Math.max(...shares));
    shares.forEach((share, i) => this.fill(i, `${Math.round(100 * share)} %`, share, i === best));
    this.announce(this.model.table?.classes[best] ?? `class ${best}`, shares[best]);
  }

  showForecast({ middle, band }) {
    this.ahead.forEach((step, i) => {
      const [low, high] = band[step];
      this.fill(i, low === high ? value(middle[step]) : `${value(middle[step])} (${value(low)} to ${value(high)})`, 0);
    });
  }

  /** Announces a class that has become likely, once. */
  announce(name, share) {
    if (share > 0.8 && name !== this.said) {
      this.said = name;
      this.say(`It is ${name}.`);
    }
  }

  /** A line for each class, or for some of the steps ahead. */
  bars() {
    const { table, outputs } = this.model;
    let names = Array.from({ length: Math.min(12, outputs) }, (_, i) => `output ${i}`);
    this.said = null;
    this.ahead = [];
    if (table?.task === "classify") names = table.classes.slice(0, 24);
    if (table?.task === "regress") names = table.target;
    if (table?.task === "forecast") {
      const some = [1, Math.ceil(table.horizon / 4), Math.ceil(table.horizon / 2), table.horizon];
      this.ahead = [...new Set(some)].map((step) => step - 1);
      names = this.ahead.map((step) => `in ${step + 1} step${step ? "s" : ""}`);
    }
    const list = element("bars");
    list.replaceChildren(
      ...names.map((name, i) => {
        const line = document.createElement("li");
        const [label, shown] = ["name", "value"].map((kind) => {
          const part = line.appendChild(document.createElement("span"));
          part.className = kind;
          return part;
        });
        [label.textContent, shown.textContent] = [name, "–"];
        if (table?.task === "classify") {
          // Its colour in the picture, even while it is unlikely.
          const mark = document.createElement("span");
          mark.className = "mark";
          mark.style.background = `var(--c${i % 8})`;
          label.prepend(mark);
          const track = line.appendChild(document.createElement("span"));
          track.className = "track";
          const fill = track.appendChild(document.createElement("span"));
          fill.className = "fill";
          fill.style.background = `var(--c${i % 8})`;
        }
        return line;
      }),
    );
    const captions = {
      regress: `${this.columns.join(", ")}. Below: ${table?.target.join(", ")} of the sequence, as far as it is read.`,
      classify: `Above: ${this.columns.join(", ")}. Below: the probability of each class after every row.`,
      forecast: `${this.columns.join(", ")}, and to the right of the dashed line the next ${table?.horizon} steps${table?.quantiles?.length > 1 ? ` with the band from quantile ${table.quantiles[0]} to ${table.quantiles.at(-1)}` : ""}.`,
    };
    element("caption").textContent = captions[table?.task] ?? this.columns.join(", ");
    element("plot").setAttribute("aria-label", captions[table?.task] ?? "The stream");
  }

  fill(i, shown, share, likeliest = false) {
    const line = element("bars").children[i];
    if (!line) return;
    line.querySelector(".value").textContent = shown;
    line.classList.toggle("likeliest", likeliest);
    const fill = line.querySelector(".fill");
    if (fill) fill.style.transform = `scaleX(${share.toFixed(3)})`;
  }

  /** Buttons for what the simulated sensor does. */
  movements() {
    const names = this.isMovement ? ["changing", ...Object.keys(MOVEMENTS)] : [];
    const group = element("movements");
    const buttons = names.map((name) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = name;
      button.setAttribute("aria-pressed", String(name === "changing"));
      button.addEventListener("click", () => {
        this.source.hold(name === "changing" ? null : name);
        buttons.forEach((other) => other.setAttribute("aria-pressed", String(other === button)));
      });
      return button;
    });
    group.replaceChildren(...buttons);
  }

  say(sentence) {
    element("stream-status").textContent = sentence;
  }
}
