"use strict";

/* The answers of a tree of numbers: predictions by the formulas of the leaves.  labels.js has the same functions for a tree of
   classes. */

const answers = {
  noun: "prediction",
  reached: "the prediction is reached",
  alwaysTogether: true,

  /** The answer at the end of a walk, whose h at a leaf is that of its formula. */
  at: (leaf, at) => ({ value: limited(leaf, summed(at(leaf))) }),
  in: ({ value }) => ({ value }),
  text: ({ value }) => numberText(value),

  goalOf,
  buildGoal,
  target,
  noGoal,
  goalWords: () => `a prediction of ${state.way.value < target() ? "at least" : "at most"} ${exact(target())}`,
  wouldBe: ({ value }) => `the prediction would be ${numberText(value)}`,

  style: () => "class-0",
  verdict,
  conclusion: (way, values) => [element("li", { id: "formula", text: formulaWords(way, values) })],
  legend: () => [],
  rowName: () => "samples",
  countWords: () => "",

  leafTitle: (v) => signs(facts.numbers.formulas[codeOf(v)].text),
  leafHeading: () => "",
  leafHead: () => `${facts.numbers.target} =`,
  leafStyle: () => "class-0",
  leafRule: (v) => element("span", { class: "rule", text: signs(facts.numbers.formulas[codeOf(v)].brief) }),
  leafDetails,

  arithmetic: {},
};

/* A formula with more terms is filled in with the largest ones, and the sum of the others. */
const mostTerms = 6;

// -- arithmetic -------------------------------------------------------------------------------------------------------

/** The sum of a formula, in the units of the target, from its h. */
function summed(h) {
  return facts.numbers.center + facts.numbers.scale * h;
}

function formulaAt(leaf) {
  return facts.numbers.formulas[leaf - nNodes];
}

/** A number within the limits of the predictions of a leaf. */
function limited(leaf, value) {
  const { low, high } = formulaAt(leaf);
  return Math.min(high === null ? Infinity : high, Math.max(low === null ? -Infinity : low, value));
}

/** A prediction of at least `wanted`, if it is less now, or of at most `wanted`: whether a walk ends with it, and what it takes
    at a leaf beside getting there (null: it cannot be had there). */
function goalOf(way, wanted) {
  const raise = way.value < wanted;
  const holds = ({ value }) => wanted !== null && (raise ? value >= wanted : value <= wanted && way.value > wanted);
  const level = (wanted - facts.numbers.center) / facts.numbers.scale;
  const least = (leaf) => limited(leaf, -Infinity);
  const most = (leaf) => limited(leaf, Infinity);
  const turnsAt = (leaf) => {
    if (wanted === null || !holds({ value: raise ? most(leaf) : least(leaf) })) return null;
    return holds({ value: raise ? least(leaf) : most(leaf) }) ? [] : [{ t: leaf, right: raise, level }];
  };
  /* The shifts of single features with which the formula of a leaf slightly passes `wanted`. */
  const shiftsOf = (h) => leaves().filter((leaf) => (turnsAt(leaf) || []).length).flatMap((leaf) => {
    const need = level + (raise ? 1 : -1) * clearance(leaf) - h[leaf];
    return facts.nodes[leaf].at.map((j, k) => [j, need / facts.nodes[leaf].w[k]]);
  });
  return { holds, turnsAt, shiftsOf };
}

function leaves() {
  return facts.numbers.formulas.map((_, k) => nNodes + k);
}

// -- words ------------------------------------------------------------------------------------------------------------

function signs(words) {
  return words.replaceAll("* ", "\u00b7 ").replaceAll(/(^|[\s(])-/g, "$1\u2212");
}

/** A prediction with decimals that fit the spread of the targets. */
function numberText(x) {
  const { decimals } = facts.numbers;
  return (Math.abs(x) >= 1e15 || decimals > 12 ? short(x, 6) : x.toFixed(decimals)).replace(/^-(?=[0.]*$)/, "").replaceAll("-", "\u2212");
}

/** A number whose last decimal is rounded down or up, so that an interval contains the unrounded one. */
function endText(x, up) {
  const unit = 10 ** facts.numbers.decimals;
  const end = (up ? Math.ceil : Math.floor)(x * unit) / unit;
  return numberText(Number.isFinite(end) ? end : x);
}

/** The number of the formula of a node that is drawn as a leaf. */
function codeOf(v) {
  return facts.outline.labels[v];
}

function buildGoal() {
  const box = by("goal").querySelector("input");
  box.value = facts.numbers.wanted;
  box.addEventListener("input", update);
  by("goal").hidden = false;
}

/** The number to reach; null if none is entered. */
function target() {
  const wanted = parseNumber(by("goal").querySelector("input").value);
  return Number.isFinite(wanted) ? wanted : null;
}

/** Why there is no change to look for; empty if there is one. */
function noGoal(way) {
  const wanted = target();
  by("goal").querySelector("input").setAttribute("aria-invalid", String(wanted === null));
  if (wanted === null) return "Enter the prediction to reach as a number.";
  return numberText(way.value) === numberText(wanted) ? `The prediction is ${exact(wanted)} already.` : "";
}

function verdict(way) {
  const parts = [`${facts.numbers.target} = `, element("b", { id: "label", text: numberText(way.value), data: { value: way.value } })];
  parts.push(element("span", { class: "detail quiet", text: ` unrounded ${exact(way.value)}` }));
  const half = facts.numbers.halfWidths && facts.numbers.halfWidths[way.leaf - nNodes];
  if (facts.numbers.halfWidths) {
    const share = `${Math.round(100 * facts.numbers.coverage)} %`;
    const text = half === null ? `No ${share} interval: too few samples were left out of training.`
      : `${share} interval: ${endText(way.value - half, false)} to ${endText(way.value + half, true)}`;
    parts.push(element("span", { id: "interval", class: "share-words", text }));
  }
  parts.push(element("span", { id: "share", class: "share-words", text: shareWords(way) }));
  return parts;
}

/** How many samples have this path, and how far off their predictions are. */
function shareWords(way) {
  const v = endOf(way);
  const all = total(v);
  if (!all) return "No sample that was counted has this path: nothing says how far off the prediction is here.";
  const error = facts.numbers.errors && facts.numbers.errors[v];
  const mean = Number.isFinite(error) ? `; their mean absolute error is ${short(error, 3)}` : "";
  return `${count(all)} ${facts.samples ? "" : "training "}${all === 1 ? "sample has" : "samples have"} this path${mean}`;
}

/** The terms of the formula of a leaf by column, the largest weights first: weight, value and what it adds. */
function termsOf(leaf, values) {
  const own = new Map(facts.nodes[leaf].at.map((j, k) => [j, (facts.nodes[leaf].w[k] * facts.numbers.scale) / facts.scale[j]]));
  const first = [...formulaAt(leaf).features, ...own.keys()].map((j) => columnOf.get(j));
  return [...new Set(first)].map((c) => {
    const { features, options } = facts.columns[c];
    const adds = features.reduce((sum, j) => sum + (own.get(j) || 0) * values[j], 0);
    const words = options || isMissing(facts.columns[c], values) || features.slice(1).some((j) => own.has(j) && values[j]);
    return { c, adds, value: values[features[0]], word: valueWords(c, values), weight: words ? null : own.get(features[0]) || 0 };
  });
}

/** The formula of the leaf with the values of the sample, and what the limits make of its sum. */
function formulaWords(way, values) {
  const { constant, limits, low } = formulaAt(way.leaf);
  const name = facts.numbers.target;
  const sum = summed(way.at(way.leaf));
  const terms = termsOf(way.leaf, values);
  if (!terms.length) return `The prediction is the same for all samples here: ${name} = ${numberText(way.value)}.`;
  const words = `${name} = ${filledIn(constant, terms, sum)} = ${numberText(sum)}`;
  if (sum !== way.value) {
    const over = sum < low ? "below" : "above";
    return `${words}, which is ${over} the limit of predictions here, so the prediction is ${numberText(way.value)} (${signs(limits)}).`;
  }
  return `${words}${limits ? ` (predictions here are ${signs(limits)})` : ""}.`;
}

/** The sum with numbers of as few digits as give its value, as it is shown. */
function filledIn(constant, terms, sum) {
  const shown = terms.length > mostTerms ? terms.slice(0, mostTerms - 1) : terms;
  const rest = terms.slice(shown.length);
  const others = rest.reduce((all, term) => all + term.adds, 0);
  for (let digits = 3; ; digits++) {
    const round = (x) => Number(x.toPrecision(digits));
    let all = round(constant);
    const parts = [exact(all)];
    const add = (x, words) => { parts.push(`${x < 0 ? "\u2212" : "+"} ${exact(Math.abs(x))}${words}`); };
    for (const { c, weight, value, word, adds } of shown) {
      if (weight === null) {
        add(round(adds), ` (${facts.columns[c].name} is ${word})`);
        all += round(adds);
      } else {
        const entered = Number(valueText(value).replaceAll("\u2212", "-"));
        add(round(weight), ` \u00b7 ${entered < 0 ? `(${exact(entered)})` : exact(entered)} (${facts.columns[c].name})`);
        all += round(weight) * entered;
      }
    }
    if (rest.length) {
      add(round(others), ` (${rest.length} more values)`);
      all += round(others);
    }
    if (digits === 17 || numberText(all) === numberText(sum)) return parts.join(" ");
  }
}

// -- the chosen leaf --------------------------------------------------------------------------------------------------

function leafDetails(v) {
  const formula = facts.numbers.formulas[codeOf(v)];
  const leaf = nNodes + codeOf(v);
  const here = state.way && state.way.leaf === leaf;
  const error = facts.numbers.errors && facts.numbers.errors[v];
  const mean = Number.isFinite(error) ? `; mean absolute error ${short(error, 3)}` : "";
  return [
    element("p", { class: "formula", text: signs(formula.text) }),
    formula.limits ? element("p", { class: "quiet", text: `Predictions are ${signs(formula.limits)}.` }) : null,
    element("p", { text: `${cap(sampleWords(v))} (counted on ${facts.counted})${mean}.` }),
    facts.nodes[leaf].at.length ? formulaTable(leaf, formula.constant, here) : null,
  ].filter((part) => part !== null);
}

/** The weights of a formula in the units of the data; with a sample on its way here also its values and what they add. */
function formulaTable(leaf, constant, withSample) {
  const node = facts.nodes[leaf];
  const heads = ["feature", "weight", "", ...(withSample ? ["sample", "adds"] : [])];
  const order = node.at.map((j, k) => ({ j, w: node.w[k] })).sort((p, q) => Math.abs(q.w) - Math.abs(p.w));
  const values = withSample ? readSample().values : null;
  const rows = order.map(({ j, w }) => {
    const weight = (w * facts.numbers.scale) / facts.scale[j];
    const cells = [facts.features[j].name, short(weight), weightBar(w / Math.abs(order[0].w))];
    return tableRow(heads, withSample ? [...cells, exact(values[j]), signed(weight * values[j], 4)] : cells);
  });
  rows.push(tableRow(heads, ["constant", short(constant), "", ...(withSample ? ["", signed(constant, 4)] : [])]));
  return element("div", { class: "scroll tall", tabindex: "0", role: "region", "aria-label": "Weights of the formula" }, table(heads, rows));
}
