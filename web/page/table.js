// A table as CSV: the columns that a model reads, as rows of numbers. It is read by the same rules as in the trainer.

/** What a cell holds if its number is missing, in any case. */
export const MISSING = ["", "nan", "na", "n/a", "null", "none", "?"];
const NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i;
/** The largest 32-bit float, which is what a model reads. */
const LARGEST = 3.4028234663852886e38;

/** The most frequent of the usual separators in the first record that is not empty, outside quotation marks, which may hold ends of lines around a cell. */
function separatorOf(text) {
  const counts = new Map([",", ";", "\t"].map((sign) => [sign, 0]));
  let place = "outside";
  for (const sign of text) {
    const isLineEnd = sign === "\n" || sign === "\r";
    if (place === "quoted") {
      if (sign === '"') place = "closed";
    } else if (isLineEnd) {
      if (place !== "outside") break;
    } else if (sign === '"') {
      if (place === "plain") place = "between";
      else place = place === "between" ? "plain" : "quoted";
    } else if (place !== "between") {
      place = counts.has(sign) ? "before" : "plain";
      if (counts.has(sign)) counts.set(sign, counts.get(sign) + 1);
    }
  }
  return [...counts.keys()].reduce((best, one) => (counts.get(one) > counts.get(best) ? one : best));
}

/** The records of a text, each with the line on which it begins and its cells; empty lines are skipped. */
function records(text) {
  const separator = separatorOf(text);
  const found = [];
  let [cells, cell, place, line, begun] = [[], "", "before", 1, 1];
  for (const sign of `${text}\n`) {
    const isLineEnd = sign === "\n" || sign === "\r";
    if (place === "quoted") {
      if (sign === '"') place = "closed";
      else cell += sign;
    } else if (sign === '"' && (place === "before" || place === "closed")) {
      // A quotation mark within quotation marks is written twice.
      if (place === "closed") cell += sign;
      place = "quoted";
    } else if (sign === separator || isLineEnd) {
      if (sign === separator || cells.length || place !== "before") cells.push(cell.trim());
      cell = "";
      place = "before";
      if (isLineEnd && cells.length) {
        found.push({ line: begun, cells });
        cells = [];
      }
    } else if (place === "before" || place === "plain") {
      cell += sign;
      place = "plain";
    } else if (sign === " " || sign === "\t") {
      place = "behind";
    } else {
      throw new Error(`Line ${line} of the table has text behind a closing quotation mark; write one within a cell twice.`);
    }
    if (sign === "\n") line += 1;
    if (!cells.length && place === "before") begun = line;
  }
  if (place === "quoted") throw new Error(`The row that begins on line ${begun} of the table ends with it within quotation marks; close them.`);
  return found;
}

/** The number in a cell, NaN if it is missing; undefined if the cell is not a number. */
function number(cell) {
  const word = cell.toLowerCase();
  if (MISSING.includes(word)) return NaN;
  if (word === "true" || word === "false") return Number(word === "true");
  const value = NUMBER.test(cell) ? Number(cell) : NaN;
  return Math.abs(value) <= LARGEST ? value : undefined;
}

const listed = (names) => names.map((name) => `'${name}'`).join(", ");

/**
 * The rows of a CSV text: the columns with these names, in this order. If the text has the column `group`, the rows of a sequence are put one after
 * the other, wherever they were; `starts` has the index of each sequence's first row.
 * @returns {{ rows: number[][], starts: Set<number> }}
 */
export function readTable(text, columns, group) {
  const [first, ...lines] = records(text.replace(/^\uFEFF/, ""));
  if (!lines.length) throw new Error("The table has no rows; expected a line of column names and a line for each step.");
  const header = first.cells;
  const absent = columns.filter((column) => !header.includes(column));
  if (absent.length) throw new Error(`The table has no column ${listed(absent)}, which the model reads; it has ${listed(header.slice(0, 12))}.`);
  const twice = [...columns, group].find((column) => header.indexOf(column) !== header.lastIndexOf(column));
  if (twice !== undefined) throw new Error(`The table has the column '${twice}' twice; give its columns different names.`);
  const places = columns.map((column) => header.indexOf(column));
  const groupAt = header.indexOf(group);
  const sequences = new Map();
  for (const { line, cells } of lines) {
    if (cells.length !== header.length) throw new Error(`Line ${line} of the table has ${cells.length} cells, expected ${header.length} as in its first line.`);
    const numbers = places.map((place, at) => {
      const value = number(cells[place]);
      if (value === undefined) throw new Error(`Line ${line} of the table has '${cells[place].slice(0, 40)}' in the column '${columns[at]}'; expected a number.`);
      return value;
    });
    const sequence = groupAt < 0 ? "" : cells[groupAt];
    if (groupAt >= 0 && sequence === "") throw new Error(`Line ${line} of the table has nothing in the column '${group}'; expected the name of a sequence.`);
    if (!sequences.has(sequence)) sequences.set(sequence, []);
    sequences.get(sequence).push(numbers);
  }
  const starts = new Set();
  let length = 0;
  for (const sequence of sequences.values()) {
    starts.add(length);
    length += sequence.length;
  }
  return { rows: [...sequences.values()].flat(), starts };
}
