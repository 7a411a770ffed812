// A table as CSV: the columns that a model reads, as rows of numbers.

const MISSING = new Set(["", "nan", "na", "null", "none", "?"]);

/** Cells of a line; quotes may hold separators. */
function cells(line, separator) {
  const found = [];
  let cell = "";
  let quoted = false;
  for (let at = 0; at < line.length; at++) {
    const sign = line[at];
    if (sign === '"') {
      if (quoted && line[at + 1] === '"') cell += line[++at];
      else quoted = !quoted;
    } else if (sign === separator && !quoted) {
      found.push(cell);
      cell = "";
    } else cell += sign;
  }
  return [...found, cell].map((cell) => cell.trim());
}

/**
 * The rows of a CSV text, of the columns of these names, in their order. Where the text has the column `group`, the rows of a sequence follow
 * each other, wherever they lie; `starts` has the first of each.
 * @returns {{ rows: number[][], starts: Set<number> }}
 */
export function readTable(text, columns, group) {
  const lines = text.replace(/^\uFEFF/, "").split(/\r?\n/).filter((line) => line.trim() !== "");
  if (lines.length < 2) throw new Error("The table has no rows; expected a line of column names and a line for each step.");
  const separator = [",", ";", "\t"].reduce((best, one) => (lines[0].split(one).length > lines[0].split(best).length ? one : best));
  const header = cells(lines[0], separator);
  const places = columns.map((column) => header.indexOf(column));
  const absent = columns.filter((_, at) => places[at] < 0);
  if (absent.length) throw new Error(`The table has no column ${absent.map((name) => `'${name}'`).join(", ")}, which the model reads; it has ${header.slice(0, 12).map((name) => `'${name}'`).join(", ")}.`);
  const groupAt = group ? header.indexOf(group) : -1;
  const sequences = new Map();
  lines.slice(1).forEach((line, row) => {
    const found = cells(line, separator);
    const numbers = places.map((place, at) => {
      const cell = found[place] ?? "";
      const value = MISSING.has(cell.toLowerCase()) ? NaN : Number(cell);
      if (Number.isNaN(value) && !MISSING.has(cell.toLowerCase())) throw new Error(`Line ${row + 2} of the table has '${cell.slice(0, 40)}' in the column '${columns[at]}'; expected a number.`);
      return value;
    });
    const sequence = groupAt < 0 ? "" : (found[groupAt] ?? "");
    if (!sequences.has(sequence)) sequences.set(sequence, []);
    sequences.get(sequence).push(numbers);
  });
  const starts = new Set();
  let length = 0;
  for (const sequence of sequences.values()) {
    starts.add(length);
    length += sequence.length;
  }
  return { rows: [...sequences.values()].flat(), starts };
}
