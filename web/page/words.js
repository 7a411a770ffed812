// Numbers as people read them.

export const element = (id) => document.getElementById(id);

/** 2 998 272 → "3.0 M" */
export function count(number) {
  if (number >= 999_500) return `${(number / 1e6).toFixed(number < 9.95e6 ? 1 : 0)} M`;
  if (number >= 10_000) return `${Math.round(number / 1000)} k`;
  return number.toLocaleString("en");
}

/** 16404 → "16 kB" */
export function bytes(number) {
  if (number >= 1e6) return `${(number / 1e6).toFixed(1)} MB`;
  return number >= 1000 ? `${(number / 1000).toFixed(number < 9950 ? 1 : 0)} kB` : `${number} B`;
}

/** A value with four significant digits. */
export function value(number) {
  if (!Number.isFinite(number)) return "–";
  if (number === 0) return "0";
  const digits = 3 - Math.floor(Math.log10(Math.abs(number)));
  return digits < -3 || digits > 8 ? number.toExponential(2) : number.toFixed(Math.min(6, Math.max(0, digits)));
}
