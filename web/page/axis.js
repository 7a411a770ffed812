// The axis of the numbers of a stream.

/** The most ticks, whatever the numbers are. */
const MOST_TICKS = 6;

/**
 * The lowest and the highest of `values` that are numbers; `before`, the previous range or null, if there are none. It grows at once and shrinks slowly,
 * so that the picture does not jump.
 */
export function rangeOf(values, before) {
  let [low, high] = [Infinity, -Infinity];
  for (const value of values) {
    if (!Number.isFinite(value)) continue;
    if (value < low) low = value;
    if (value > high) high = value;
  }
  if (low > high) return before;
  if (low === high) {
    const around = Math.max(1, 1e-6 * Math.abs(low));
    [low, high] = [low - around, high + around];
  }
  if (!before) return [low, high];
  const ease = (from, to, outward) => (outward ? to : from + (to - from) * 0.06);
  return [ease(before[0], low, low < before[0]), ease(before[1], high, high > before[1])];
}

/** Two to five round numbers between `low` and `high`, each with its label, which is empty where six digits do not tell it from its neighbours. */
export function ticks(low, high) {
  const rough = (high - low) / 3;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((n) => n * power).find((step) => step >= rough);
  const found = [];
  for (let at = Math.ceil(low / step); at * step <= high && found.length < MOST_TICKS; at++) {
    const tick = at * step;
    const shown = Number(tick.toPrecision(6));
    found.push({ tick, label: Math.abs(shown - tick) < 0.01 * step ? String(shown).replace("-", "−") : "" });
    if (at + 1 === at) break;
  }
  return found;
}
