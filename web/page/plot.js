// The picture of a stream: its last rows, and on the same time axis the probability of each class or, to the right, the forecast.

import { rangeOf, ticks } from "./axis.js";

const COLORS = 8;
/** Where the time axis begins, to the right of the other axis' numbers, and the margin at the edges. */
const LEFT = 42;
const EDGE = 8;

export class Plot {
  constructor(canvas) {
    this.canvas = canvas;
    this.range = null;
    const style = () => {
      const css = getComputedStyle(document.documentElement);
      const color = (name) => css.getPropertyValue(name).trim();
      this.colors = Array.from({ length: COLORS }, (_, i) => color(`--c${i}`));
      [this.ink, this.soft, this.line] = ["--ink", "--soft", "--line"].map(color);
      this.font = `12px ${css.getPropertyValue("--sans")}`;
    };
    style();
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => (style(), this.again?.()));
    new ResizeObserver(() => this.again?.()).observe(canvas);
  }

  color(i) {
    return this.colors[i % COLORS];
  }

  /** The canvas, cleared, in units of CSS pixels. */
  begin() {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    const ratio = window.devicePixelRatio || 1;
    const [w, h] = [Math.round(width * ratio), Math.round(height * ratio)];
    if (this.canvas.width !== w || this.canvas.height !== h) Object.assign(this.canvas, { width: w, height: h });
    const paper = this.canvas.getContext("2d");
    paper.setTransform(ratio, 0, 0, ratio, 0, 0);
    paper.clearRect(0, 0, width, height);
    paper.font = this.font;
    paper.lineJoin = "round";
    return { paper, width, height };
  }

  /**
   * @param {object} what
   * @param {number[][]} what.rows the last rows, oldest first, at most `what.span`
   * @param {number} what.span number of rows that the axis has room for
   * @param {number[][]} [what.shares] the probability of each class after each row
   * @param {{ band: [number, number][], middle: number[] }} [what.ahead] the forecast
   */
  draw(what) {
    this.again = () => this.draw(what);
    const { paper, width, height } = this.begin();
    const { rows, span, shares, ahead } = what;
    if (!rows.length || width < LEFT + EDGE) return;
    const steps = span + (ahead ? ahead.middle.length : 0);
    const x = (step) => LEFT + ((width - LEFT - EDGE) * step) / Math.max(1, steps - 1);
    const first = span - rows.length;
    const bottom = shares ? height * 0.56 : height - EDGE;
    this.signal(paper, { rows, x, first, top: 10, bottom, width, ahead, span });
    if (shares) this.areas(paper, { shares, x, first, top: bottom + 14, bottom: height - EDGE });
  }

  signal(paper, { rows, x, first, top, bottom, width, ahead, span }) {
    this.range = rangeOf(rows.flat().concat(ahead ? ahead.band.flat() : []), this.range);
    if (!this.range) return;
    const [low, high] = this.range;
    const y = (value) => bottom - ((bottom - top) * (value - low)) / (high - low || 1);

    paper.strokeStyle = this.line;
    paper.fillStyle = this.soft;
    paper.lineWidth = 1;
    [paper.textAlign, paper.textBaseline] = ["right", "middle"];
    for (const { tick, label } of ticks(low, high)) {
      paper.beginPath();
      paper.moveTo(LEFT, y(tick));
      paper.lineTo(width - EDGE, y(tick));
      paper.stroke();
      paper.fillText(label, LEFT - 7, y(tick));
    }
    if (ahead) this.fan(paper, { ahead, x, y, span, last: rows.at(-1)[ahead.column], top, bottom });
    const columns = rows[0].length;
    for (let column = 0; column < columns; column++) {
      paper.strokeStyle = columns === 1 ? this.ink : this.color(column);
      paper.lineWidth = 1.8;
      paper.beginPath();
      let pen = false;
      rows.forEach((row, i) => {
        const known = Number.isFinite(row[column]);
        if (known) paper[pen ? "lineTo" : "moveTo"](x(first + i), y(row[column]));
        pen = known;
      });
      paper.stroke();
    }
    paper.fillStyle = this.ink;
    paper.beginPath();
    const [end, at] = [x(span - 1), y(rows.at(-1)[ahead?.column ?? 0])];
    if (Number.isFinite(at)) paper.arc(end, at, 3.5, 0, 7);
    paper.fill();
  }

  fan(paper, { ahead, x, y, span, last, top, bottom }) {
    const at = (step) => x(span + step);
    paper.fillStyle = this.color(0);
    paper.globalAlpha = 0.22;
    paper.beginPath();
    if (Number.isFinite(last)) paper.moveTo(x(span - 1), y(last));
    ahead.band.forEach(([low], step) => paper.lineTo(at(step), y(low)));
    [...ahead.band].reverse().forEach(([, high], step) => paper.lineTo(at(ahead.band.length - 1 - step), y(high)));
    paper.fill();
    paper.globalAlpha = 1;
    paper.strokeStyle = this.color(0);
    paper.lineWidth = 2.2;
    paper.beginPath();
    if (Number.isFinite(last)) paper.moveTo(x(span - 1), y(last));
    ahead.middle.forEach((value, step) => paper.lineTo(at(step), y(value)));
    paper.stroke();
    paper.strokeStyle = this.soft;
    paper.lineWidth = 1;
    paper.setLineDash([3, 4]);
    paper.beginPath();
    paper.moveTo(x(span - 1), top);
    paper.lineTo(x(span - 1), bottom);
    paper.stroke();
    paper.setLineDash([]);
  }

  /** Stacked probabilities, 1 in all. */
  areas(paper, { shares, x, first, top, bottom }) {
    const classes = shares[0].length;
    const below = shares.map(() => 0);
    const y = (share) => bottom - (bottom - top) * share;
    for (let i = 0; i < classes; i++) {
      paper.fillStyle = this.color(i);
      paper.globalAlpha = 0.85;
      paper.beginPath();
      shares.forEach((_, t) => paper.lineTo(x(first + t), y(below[t])));
      for (let t = shares.length - 1; t >= 0; t--) {
        below[t] += shares[t][i];
        paper.lineTo(x(first + t), y(below[t]));
      }
      paper.fill();
    }
    paper.globalAlpha = 1;
  }
}
