"use strict";

/* What people type and paste, as values of features: numbers with a point or a comma, words as one of a choice. */

const columnOf = new Map(facts.columns.flatMap((column, c) => column.features.map((j) => [j, c])));

/** The number a text means, or NaN: "1.5", "1,5", "-2e3"; with marks between thousands it is none. */
function parseNumber(text) {
  const plain = text.trim().replaceAll("\u2212", "-");
  return /^[+-]?(\d+([.,]\d*)?|[.,]\d+)(e[+-]?\d+)?$/i.test(plain) ? Number(plain.replace(",", ".")) : NaN;
}

/** The position of the option that a text names, or -1; case and blanks around it do not count unless they must. */
function optionOf(column, text) {
  const word = text.trim();
  const exact = column.options.findIndex((option) => option.word === word);
  if (exact >= 0) return exact;
  const same = (option) => option.word.toLowerCase() === word.toLowerCase()
    || (Number.isFinite(parseNumber(word)) && parseNumber(option.word) === parseNumber(word));
  const alike = column.options.filter(same);
  return alike.length === 1 ? column.options.indexOf(alike[0]) : -1;
}

/** The option whose values these are, or the nearest. */
function optionAt(column, values) {
  const away = column.options.map((option) => option.values.reduce((sum, x, k) => sum + Math.abs(x - values[column.features[k]]), 0));
  return away.indexOf(Math.min(...away));
}

/** A feature's value in words: that of its column's choice, or the number. */
function valueWords(c, values) {
  const column = facts.columns[c];
  return column.options ? column.options[optionAt(column, values)].word : exact(values[column.features[0]]);
}

/** Whether a number lies outside the range of training, by more than rounding. */
function isOutside(j, x) {
  const { low, high } = facts.features[j];
  if (low === null || facts.columns[columnOf.get(j)].options) return false;
  const slack = 1e-9 * (high - low);
  return x < low - slack || x > high + slack;
}

/** Both ends with as many digits as it takes to tell them apart. */
function rangeWords({ low, high }) {
  const size = Math.max(Math.abs(low), Math.abs(high)) / (high - low);
  const digits = Number.isFinite(size) ? Math.min(12, 3 + Math.max(0, Math.ceil(Math.log10(size)))) : 6;
  return `${short(low, digits)} to ${short(high, digits)}`;
}

const marks = ["\t", ";", "|", ",", " "];

/** The cells of a row parted by a mark; quotes keep a cell together, and a mark at the end starts no further cell. */
function cellsOf(text, mark) {
  const cells = [];
  let cell = "";
  let quoted = false;
  for (const sign of text.trim()) {
    if (sign === '"') quoted = !quoted;
    else if (!quoted && (mark === " " ? /\s/.test(sign) : sign === mark)) { cells.push(cell); cell = ""; } else cell += sign;
  }
  cells.push(cell);
  const trimmed = cells.map((one) => one.trim());
  if (mark === " ") return trimmed.map((one) => one.replace(/[,;]$/, "")).filter((one) => one !== "");
  return trimmed.length > 1 && trimmed[trimmed.length - 1] === "" ? trimmed.slice(0, -1) : trimmed;
}

/** The values a pasted row means, or what is wrong with it. */
function readRow(text) {
  const tries = marks.map((mark) => cellsOf(text, mark));
  const fitting = tries.filter((cells) => cells.length === facts.columns.length).map(valuesOf);
  const good = fitting.find((one) => one.values);
  if (good) return good;
  const coded = tries.filter((cells) => cells.length === facts.features.length).map(codedValues).find((one) => one !== null);
  if (coded) return { values: coded };
  if (fitting.length) return fitting[0];
  return { wrong: `That were ${(tries.find((cells) => cells.length > 1) || tries[0]).length} entries; ${needed()}.` };
}

function needed() {
  const n = facts.columns.length;
  const what = facts.columns.some((column) => column.options) ? "values" : "numbers";
  const names = facts.columns.slice(0, 8).map((column) => column.name).join(", ");
  return `${n} ${what} are needed: ${names}${n > 8 ? ", \u2026" : ""}`;
}

function valuesOf(cells) {
  const values = facts.features.map(() => NaN);
  for (const [c, column] of facts.columns.entries()) {
    if (!column.options) {
      values[column.features[0]] = parseNumber(cells[c]);
      if (Number.isNaN(values[column.features[0]])) return { wrong: `\u201c${cells[c]}\u201d for ${column.name} is no number.` };
      continue;
    }
    const k = optionOf(column, cells[c]);
    const words = column.options.map((option) => option.word).join(", ");
    if (k < 0) return { wrong: `\u201c${cells[c]}\u201d for ${column.name} is none of: ${words}.` };
    column.features.forEach((j, i) => { values[j] = column.options[k].values[i]; });
  }
  return { values };
}

/** A row of one number per feature, words already as 0 and 1; null if it is none. */
function codedValues(cells) {
  const values = cells.map(parseNumber);
  const known = ({ options, features }) => !options || options.some((option) => option.values.every((x, k) => x === values[features[k]]));
  return values.every(Number.isFinite) && facts.columns.every(known) ? values : null;
}
