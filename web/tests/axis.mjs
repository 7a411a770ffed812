// The axis of the page's picture:
//   node axis.mjs
import assert from "node:assert/strict";
import { test } from "node:test";
import { rangeOf, ticks } from "../page/axis.js";

test("a range holds the numbers, grows at once and shrinks slowly", () => {
  assert.deepEqual(rangeOf([3, NaN, -1, 2], null), [-1, 3]);
  assert.deepEqual(rangeOf([0, 9], [-1, 3]), [-0.94, 9]);
  assert.deepEqual(rangeOf([5], null), [4, 6]);
});

test("rows without a number leave the range as it is", () => {
  assert.equal(rangeOf([NaN, NaN], null), null);
  assert.equal(rangeOf([], null), null);
  assert.deepEqual(rangeOf([NaN], [1, 2]), [1, 2]);
});

test("many numbers have a range", () => {
  assert.deepEqual(rangeOf(Array.from({ length: 400_000 }, (_, i) => i), null), [0, 399_999]);
});

test("ticks are few round numbers within the range, as far as six digits tell them", () => {
  const labels = (low, high) => ticks(low, high).map(({ label }) => label);
  assert.deepEqual(labels(-1.2, 1.3), ["−1", "0", "1"]);
  assert.deepEqual(labels(0, 10), ["0", "5", "10"]);
  assert.deepEqual(labels(0.1, 0.4), ["0.2", "0.4"]);
  assert.deepEqual(labels(101_325, 101_329), ["101326", "101328"]);
  // Their neighbours would have the same label.
  assert.deepEqual(new Set(labels(1_234_567.1, 1_234_567.9)), new Set([""]));
});

test("ticks end wherever numbers lie", () => {
  const around = (value) => [rangeOf([value], null), [value, value + 2 ** (Math.floor(Math.log2(value)) - 52)]];
  for (const [low, high] of [0.3, 1, 1e16, 1.7e18, 3.4e38].flatMap(around)) {
    assert.ok(low < high, `${low} to ${high}`);
    const found = ticks(low, high);
    assert.ok(found.length < 8 && found.every(({ tick }) => tick >= low && tick <= high), `${low} to ${high}`);
  }
});
