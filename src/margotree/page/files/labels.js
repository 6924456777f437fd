"use strict";

/* The answers of a tree of classes: labels with probabilities.  numbers.js has the same functions for a tree of numbers. */

const answers = {
  noun: "label",
  reached: "the label changes",
  alwaysTogether: false,

  /** The answer at the end of a walk. */
  at: (leaf) => ({ code: facts.leafClass[leaf - nNodes] }),
  in: ({ code }) => ({ code }),
  text: ({ code }) => facts.classes[code],

  /** The label to reach, a position of a class or null for any other than the current one: whether a walk ends with it, and
      what it takes at a leaf beside getting there (null: it cannot be had there). */
  goalOf(way, target) {
    const holds = ({ code }) => code !== way.code && (target === null || code === target);
    return { holds, turnsAt: (leaf) => (holds(answers.at(leaf)) ? [] : null), shiftsOf: () => [] };
  },

  buildGoal,
  target,
  noGoal: (way) => (target() === way.code ? `The sample has the label ${facts.classes[target()]} already.` : ""),
  goalWords: () => (target() === null ? "another label" : `the label ${facts.classes[target()]}`),
  wouldBe: ({ code }) => `the answer would be ${facts.classes[code]}`,

  style: (way) => `class-${way.code}`,
  verdict,
  conclusion: (_way, _values, hasReasons) => (hasReasons ? [] : [element("li", { text: "The answer is the same for all values." })]),
  legend: () => facts.classes.map((label, k) => element("li", {}, swatch(k), label)),
  rowName: (k) => facts.classes[k],
  countWords: (counts) => counts
    .map((n, k) => ({ n, k }))
    .filter(({ n }) => n || facts.classes.length === 2)
    .map(({ n, k }) => `${count(n)} ${facts.classes[k]}`).join(", "),

  leafTitle: labelOf,
  leafHeading: (v) => `: ${labelOf(v)}`,
  leafHead: labelOf,
  leafStyle: (v) => `class-${codeOf(v)}`,
  leafRule: () => null,
  leafDetails,

  arithmetic: { decision, probabilities },
};

/** The distance from v to the leaves that are `there`: the largest |h| of the splits to cross, least over all paths. */
function wayTo(v, at, there) {
  if (!there[v]) return Infinity;
  if (v >= nNodes) return 0;
  const h = at(v);
  const right = goesRight(v, h);
  const across = facts.nodes[v].w.length === 0 ? Infinity : right && h < 0 ? 0 : Math.abs(h);
  return Math.min(
    Math.max(right ? 0 : across, wayTo(childOf(v, true), at, there)),
    Math.max(right ? across : 0, wayTo(childOf(v, false), at, there)),
  );
}

/** The decision function of a tree for two classes, as in margotree/tree/score.py: positive for the second class. */
function decision(way) {
  const onThePlane = 2.2250738585072014e-308;
  if (facts.classes.length !== 2) return NaN;
  let size = Infinity;
  for (const below of facts.labelsBelow) {
    if (size === Infinity) size = wayTo(0, way.at, below[1 - way.code]);
  }
  if (size === Infinity) size = 1;
  return (way.code === 1 ? 1 : -1) * Math.max(size, onThePlane);
}

/** The probabilities of the classes, as in margotree/tree/probabilities.py. */
function probabilities(way) {
  const rule = facts.probabilities;
  if (rule.table) return rule.table[way.leaf - nNodes];
  const distances = rule.targets.map((leaves, k) => {
    if (k === way.code) return 0;
    const found = wayTo(0, way.at, below(leaves));
    return Math.min(rule.farthest, found === Infinity && facts.classes.length === 2 ? 1 : found);
  });
  const odds = rule.intercept.map((c, k) => rule.slope.reduce((sum, row, j) => sum + row[k] * distances[j], c));
  const others = Math.max(...odds.filter((_, k) => k !== way.code));
  odds[way.code] = Math.max(odds[way.code] + rule.step[way.code], others + rule.lead);
  const shares = odds.map((value) => Math.exp(value - odds[way.code]));
  const total = shares.reduce((sum, share) => sum + share);
  const weighted = shares.map(
    (share, k) => (((1 - rule.floor) * share) / total + rule.floor / shares.length) / rule.class_weight[k]);
  const all = weighted.reduce((sum, share) => sum + share);
  return weighted.map((share) => share / all);
}

/** Whether one of these leaves is at or below each node. */
function below(leaves) {
  const found = [...new Array(nNodes).fill(false), ...leaves];
  for (let t = nNodes - 1; t >= 0; t--) found[t] = found[childOf(t, false)] || found[childOf(t, true)];
  return found;
}

function labelOf(v) {
  return facts.classes[codeOf(v)];
}

function codeOf(v) {
  return facts.outline.labels[v];
}

/** With more than two classes the label to reach can be chosen among those of the leaves. */
function buildGoal() {
  const labels = [...new Set(facts.leafClass)].sort((a, b) => a - b);
  if (labels.length < 3) return;
  const box = by("goal").querySelector("select");
  box.append(element("option", { value: "", text: "any other" }), ...labels.map((k) => element("option", { value: k, text: facts.classes[k] })));
  box.addEventListener("change", update);
  by("goal").hidden = false;
}

/** The class to reach; null for any other. */
function target() {
  const chosen = by("goal").querySelector("select").value;
  return chosen === "" ? null : Number(chosen);
}

function verdict(way) {
  const parts = [swatch(way.code), element("b", { text: facts.classes[way.code], id: "label" })];
  if (facts.classes.length === 2) {
    parts.push(element("span", { class: "detail" }, element("span", { class: "quiet", text: ` decision value ` }),
      element("span", { id: "decision", text: signed(decision(way), 4) })));
  }
  const chance = probabilities(way)[way.code];
  parts.push(element("span", { class: "quiet", text: " probability " }), element("span", { id: "probability", text: (Math.floor(1000 * chance) / 10).toFixed(1) + " %" }));
  parts.push(element("span", { id: "share", class: "share-words", text: shareWords(way) }));
  return parts;
}

/** How often the label is right where the sample ends: "95 % of the 83 training samples on this path are malignant". */
function shareWords(way) {
  const v = endOf(way);
  const all = total(v);
  if (!all) return "No sample that was counted has this path: nothing says how often the label is right here.";
  const own = facts.counts[v][way.code];
  return `${percent(own / all)} of the ${facts.samples ? "" : "training "}samples on this path are ${facts.classes[way.code]} `
    + `(${count(own)} of ${count(all)})`;
}

function leafDetails(v) {
  const wrong = total(v) - facts.counts[v][codeOf(v)];
  const parts = [element("p", {}, "Samples that end here get the label ", element("b", { text: labelOf(v) }), ".")];
  parts.push(element("p", { text: `${cap(sampleWords(v))}${total(v) ? `; ${count(wrong)} of them have another label.` : "."}` }));
  return parts;
}
