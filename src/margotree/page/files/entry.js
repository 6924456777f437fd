"use strict";

/* Entered and pasted text as values of features: numbers with a point or a comma, words as options. */

const columnOf = new Map(facts.columns.flatMap((column, c) => column.features.map((j) => [j, c])));

/** The number of a text, or NaN: "1.5", "1,5", "-2e3"; thousands separators are not allowed. */
function parseNumber(text) {
  const plain = text.trim().replaceAll("\u2212", "-");
  return /^[+-]?(\d+([.,]\d*)?|[.,]\d+)(e[+-]?\d+)?$/i.test(plain) ? Number(plain.replace(",", ".")) : NaN;
}

/** A word in lower case and with single blanks. */
function folded(word) {
  return word.toLowerCase().trim().split(/\s+/).join(" ");
}

/** The feature values of a word, or undefined; case and blanks matter only if words differ in these alone. */
function wordValues(words, text) {
  const exact = words.find(([word]) => word === text);
  if (exact) return exact[1];
  const alike = words.filter(([word]) => folded(word) === folded(text));
  return alike.length === 1 ? alike[0][1] : undefined;
}

/** A number without its unit, if the column has one and digits precede it. */
function withoutUnit(column, text) {
  for (const unit of column.units) {
    if (!text.toLowerCase().endsWith(unit)) continue;
    const rest = text.slice(0, text.length - unit.length).trim();
    if (/\d$/.test(rest)) return rest;
  }
  return text;
}

/** The milliseconds of a day; the day of a date in milliseconds, NaN if there is no such day. */
const DAY = 86400000;
function dayOf(year, month, day) {
  const date = new Date(0);
  date.setUTCFullYear(year, month - 1, day);
  const same = year > 0 && date.getUTCFullYear() === year && date.getUTCMonth() === month - 1 && date.getUTCDate() === day;
  return same ? date.getTime() : NaN;
}

/** The days from a date (YYYY-MM-DD) to the one in a text of this form, which a time may follow; NaN for other texts. */
function daysSince([form, since], text) {
  const rest = text.slice(form.length);
  if (text.length < form.length || !/^([ Tt]|$)/.test(rest)) return NaN;
  const parts = { Y: "", M: "", D: "" };
  for (let k = 0; k < form.length; k++) {
    if (form[k] in parts ? !/[0-9]/.test(text[k]) : text[k] !== form[k]) return NaN;
    if (form[k] in parts) parts[form[k]] += text[k];
  }
  return Math.round((dayOf(Number(parts.Y), Number(parts.M), Number(parts.D)) - dayOf(...since.split("-").map(Number))) / DAY);
}

/** The date at this number of days after the first one, in the form of the column. */
function dateText([form, since], days) {
  const date = new Date(dayOf(...since.split("-").map(Number)) + Math.round(days) * DAY);
  const [year, month, day] = date.toISOString().split("T")[0].split("-");
  return form.replace("YYYY", year).replace("MM", month).replace("DD", day);
}

/** A value of a column as its entry has it. */
function entryText(column, value) {
  return column.date && Number.isFinite(value) ? dateText(column.date, value) : value;
}

/** A new value of a column in a sentence. */
function changedText(column, value) {
  return column.date ? dateText(column.date, value) : exact(value);
}

/** The feature values of a cell, or null, by the rule of margotree/table/cell_rules.py. */
function readCell(column, cell) {
  const text = cell.trim();
  if (facts.missing.includes(text.toLowerCase())) return column.missing;
  const known = wordValues(column.words, text);
  if (known !== undefined) return known;
  const number = column.date ? daysSince(column.date, text) : column.numeric ? parseNumber(withoutUnit(column, text)) : NaN;
  if (!Number.isFinite(number)) return column.other;
  const values = column.features.map((_, k) => (k === 0 ? number : 0));
  // A column that is 0 or 1 in all samples is a choice of these.
  return column.options && !column.options.some((option) => option.values[0] === number) ? null : values;
}

/** Whether these are the values of a missing cell with an indicator feature. */
function isMissing(column, values) {
  return column.missing !== null && column.features.length > 1 && !column.options
    && column.features.every((j, k) => values[j] === column.missing[k]);
}

/** The option with these values, or the nearest one. */
function optionAt(column, values) {
  const away = column.options.map((option) => option.values.reduce((sum, x, k) => sum + Math.abs(x - values[column.features[k]]), 0));
  return away.indexOf(Math.min(...away));
}

/** A feature value as text: the word of its option, or the number. */
function valueWords(c, values) {
  const column = facts.columns[c];
  if (column.options) return column.options[optionAt(column, values)].word;
  const value = values[column.features[0]];
  return isMissing(column, values) ? "not known" : column.date ? dateText(column.date, value) : exact(value);
}

/** What a sample has at a split, and on which side of the limit that is, as margotree/tree/sentences.py says it. */
function reasonWords(rule, values, right) {
  const onlyWords = rule.literals.every((literal) => hasOne(literal, literal.values, values));
  if (rule.logic && onlyWords) return logicWords(rule, values, right);
  const side = rule.relation === "<=" ? (right ? "at most" : "above") : (right ? "at least" : "below");
  const sum = rule.exact.weights.reduce((all, w, k) => all + w * values[rule.exact.features[k]], 0);
  const single = rule.features.length === 1;
  const value = single ? values[rule.features[0]] : sum;
  const [shown, limit] = onItsSide(value, rule, right, single ? valueText(value) : null);
  if (single) return `${facts.features[rule.features[0]].name} = ${shown} is ${side} ${limit}`;
  const shares = sharesText(rule, values);
  if (shares) return `${shares} = ${shown} is ${side} ${limit}`;
  const names = rule.features.map((j) => facts.features[j].name);
  const terms = names.length > 4
    ? `${sumText(rule, names.slice(0, 2))} + \u2026 (${names.length} features)`
    : `${sumText(rule, names)} = ${sumText(rule, rule.features.map((j) => valueText(values[j])))}`;
  return `${terms} = ${shown} is ${side} ${limit}`;
}

/** What each column of words or with missing cells adds to the sum, and its cell; null if the rule has none. */
function sharesText(rule, values) {
  const same = (column, list) => list.every((x, k) => values[column.first + k] === x);
  const parts = rule.by_column.map((column) => {
    const [weight, value] = [column.weights[0], values[column.first]];
    if (!column.states.length) {
      const missing = column.missing !== null && same(column, column.missing);
      const adds = column.weights.reduce((all, w, k) => all + w * values[column.first + k], 0);
      const product = `${valueText(Math.abs(weight))} \u00b7 ${valueText(Math.abs(value))}`;
      return { adds, text: missing || Math.abs(weight) === 1 ? valueText(Math.abs(adds)) : product,
        words: missing ? `${column.name} is missing` : column.name };
    }
    const state = column.states.find((one) => same(column, one.values));
    return state && { adds: state.adds, text: valueText(Math.abs(state.adds)), words: state.words };
  });
  if (!parts.length || parts.length > 4 || parts.includes(undefined)) return null;
  const sign = (adds, k) => (k ? (adds < 0 ? "\u2212 " : "+ ") : adds < 0 ? "\u2212" : "");
  return parts.map(({ adds, text, words }, k) => `${sign(adds, k)}${text} (${words})`).join(" ");
}

/** A value in full if it is short, otherwise with six digits. */
function valueText(x) {
  return exact(String(x).length <= 10 ? x : Number(x.toPrecision(6)));
}

/** The value and the limit with so many digits that the value is on its side. */
function onItsSide(value, rule, right, text) {
  const limit = Number(rule.threshold);
  const holds = (x, y) => (rule.relation === "<=" ? x <= y : x >= y) === right;
  if (text !== null && holds(Number(text.replaceAll("\u2212", "-")), limit)) return [text, exact(rule.threshold)];
  for (let digits = 5; digits <= 17; digits++) {
    const shown = Number(value.toPrecision(digits));
    if (holds(shown, limit)) return [exact(shown), exact(rule.threshold)];
  }
  for (let digits = 5; digits <= 17; digits++) {
    const [shown, exactLimit] = [value, rule.exact.limit].map((x) => Number(x.toPrecision(digits)));
    if (holds(shown, exactLimit)) return [exact(shown), exact(exactLimit)];
  }
  return [`${exact(rule.threshold)} (within rounding errors)`, exact(rule.threshold)];
}

/** A number as text without its sign; exponents keep theirs. */
function withoutSign(number) {
  return number.replace(/^-/, "").replace("-", "\u2212");
}

function sumText(rule, names) {
  return names.map((name, k) => {
    const number = withoutSign(rule.weights[k]);
    const minus = rule.weights[k].startsWith("-");
    const sign = k ? (minus ? "\u2212 " : "+ ") : minus ? "\u2212" : "";
    const shown = name.startsWith("\u2212") && (number !== "1" || k) ? `(${name})` : name;
    return `${sign}${number === "1" ? "" : `${number} \u00b7 `}${shown}`;
  }).join(" ");
}

/** Whether the features of a statement have one of these lists of values. */
function hasOne(literal, lists, values) {
  return lists.some((list) => list.every((x, k) => values[literal.features[k]] === x));
}

function logicWords(rule, values, right) {
  const texts = (holds) => rule.literals.filter((literal) => hasOne(literal, literal.accepted, values) === holds).map((literal) => literal.text);
  const met = texts(true);
  const failed = texts(false);
  if (right) return met.join(" and ");
  if (!met.length) return `it is not true that ${failed.join(" or ")}`;
  const needed = rule.least === rule.literals.length ? "all" : `at least ${rule.least}`;
  return `${met.join(" and ")}, but not ${failed.join(" and not ")} (${needed} would have to be true)`;
}

/** Whether a number lies outside the range of training, by more than rounding. */
function isOutside(j, x) {
  const { low, high } = facts.features[j];
  if (low === null || facts.columns[columnOf.get(j)].options) return false;
  const slack = 1e-9 * (high - low);
  return x < low - slack || x > high + slack;
}

/** Both ends with the least number of digits that makes them different. */
function rangeWords({ low, high, date }) {
  if (date) return `${dateText(date, low)} to ${dateText(date, high)}`;
  const size = Math.max(Math.abs(low), Math.abs(high)) / (high - low);
  const digits = Number.isFinite(size) ? Math.min(12, 3 + Math.max(0, Math.ceil(Math.log10(size)))) : 6;
  return `${short(low, digits)} to ${short(high, digits)}`;
}

const marks = ["\t", ";", "|", ",", " "];

/** The cells of a row with this separator; separators within quotes do not count. */
function cellsOf(text, mark) {
  const cells = [];
  let cell = "";
  let quoted = false;
  for (const sign of mark === " " ? text.trim() : text) {
    if (sign === '"') quoted = !quoted;
    else if (!quoted && (mark === " " ? /\s/.test(sign) : sign === mark)) { cells.push(cell); cell = ""; } else cell += sign;
  }
  cells.push(cell);
  const trimmed = cells.map((one) => one.trim());
  if (mark === " ") return trimmed.map((one) => one.replace(/[,;]$/, "")).filter((one) => one !== "");
  return trimmed;
}

/** The rows that a text may be: a mark at its end may start a further cell, which is missing, or none. */
function rowsOf(text) {
  return marks.map((mark) => cellsOf(text, mark)).flatMap((cells) => (
    cells.length > 1 && cells[cells.length - 1] === "" ? [cells.slice(0, -1), cells] : [cells]));
}

/** The feature values of a pasted row, or an error message. */
function readRow(text) {
  const tries = rowsOf(text);
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
    const read = readCell(column, cells[c]);
    if (read === null) {
      if (!column.options) return { wrong: `\u201c${cells[c]}\u201d for ${column.name} is no number.` };
      const words = column.options.filter((option) => !option.missing && !option.other).map((option) => option.word).join(", ");
      return { wrong: `\u201c${cells[c]}\u201d for ${column.name} is none of: ${words}.` };
    }
    column.features.forEach((j, k) => { values[j] = read[k]; });
  }
  return { values };
}

/** The values of a row with one number per feature; null if it is not such a row. */
function codedValues(cells) {
  const values = cells.map(parseNumber);
  const known = ({ options, features }) => !options || options.some((option) => option.values.every((x, k) => x === values[features[k]]));
  return values.every(Number.isFinite) && facts.columns.every(known) ? values : null;
}
