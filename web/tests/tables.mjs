// The page reads tables as the trainer does; the trainer's test of tables.json is in crates/cli/tests:
//   node tables.mjs
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { MISSING, readTable } from "../page/table.js";

const { read, refused } = JSON.parse(await readFile(new URL("tables.json", import.meta.url), "utf8"));
const rust = new URL("../../crates/minrnn/src/data/table/missing.rs", import.meta.url);

test("what is missing is what the trainer takes for missing", { skip: !existsSync(rust) && "the trainer's source is not here" }, async () => {
  const [, list] = (await readFile(rust, "utf8")).match(/const MISSING: \[&str; \d+\] = (\[[^\]]*\]);/);
  assert.deepEqual(MISSING, JSON.parse(list));
});

test("cells are the numbers that the trainer reads", () => {
  for (const { text, columns, group, rows, sequences = 1 } of read) {
    const table = readTable(text, columns, group ?? null);
    // JSON has no NaN, and zero must have one sign.
    const shown = table.rows.map((row) => row.map((value) => (Number.isNaN(value) ? null : value + 0)));
    assert.deepEqual([shown, table.starts.size], [rows, sequences], text);
  }
});

test("what the trainer refuses is refused, with its line", () => {
  for (const { text, columns, group, line } of refused) {
    const names = (error) => line === undefined || new RegExp(`\\bline ${line}\\b`, "i").test(error.message);
    assert.throws(() => readTable(text, columns, group ?? null), names, text);
  }
});
