"use strict";

/* The tree as a function: arithmetic on the facts, independent of the page. */

const facts = JSON.parse(document.getElementById("facts").textContent);
const nNodes = facts.nodes.length;

/** Values in scaled units; `given` are the values in the units of the user. */
function scaled(values) {
  const point = values.map((x, j) => (x - facts.offset[j]) / facts.scale[j]);
  point.given = values;
  return point;
}

/** h of node t: its sign is the side, its size the distance in margins. */
function distance(t, point) {
  const node = facts.nodes[t];
  let sum = 0;
  for (let k = 0; k < node.at.length; k++) sum += node.w[k] * point[node.at[k]];
  return (Number.isFinite(sum) ? sum : hugeSum(node, point.given)) + node.b;
}

/** The largest absolute value of an h, as in margotree/tree/decision_values.py. */
const largest = 2 ** 1022;

/** A number as digits and a power of two. */
function parts(x) {
  if (x === 0) return [0, 0];
  const power = Math.min(1023, Math.floor(Math.log2(Math.abs(x))));
  return [x / 2 ** power, power];
}

/** A sum of terms that would overflow, from their digits and exponents. */
function hugeSum(node, values) {
  const terms = node.at.map((j, k) => {
    const [x, xPower] = parts(values[j] / 4 - facts.offset[j] / 4);
    const [w, wPower] = parts(node.w[k]);
    const [s, sPower] = parts(facts.scale[j]);
    return [(x * w) / s, xPower + 2 + wPower - sPower];
  });
  const top = Math.max(...terms.filter(([term]) => term !== 0).map(([, power]) => power));
  const sum = terms.reduce((all, [term, power]) => all + (term === 0 ? 0 : term * 2 ** (power - top)), 0);
  const half = Math.floor(top / 2);
  return Math.max(-largest, Math.min(largest, sum * 2 ** half * 2 ** (top - half)));
}

/** Whether the sample goes right; on the hyperplane, up to rounding, it does. */
function goesRight(t, h) {
  return h >= -facts.nodes[t].tie;
}

function childOf(t, right) {
  return 2 * t + (right ? 2 : 1);
}

/** Walks down with the h that `at(t)` gives: the steps, the leaf and the position of its class. */
function walk(at) {
  const steps = [];
  let v = 0;
  while (v < nNodes) {
    const h = at(v);
    const right = goesRight(v, h);
    steps.push({ node: v, h, right });
    v = childOf(v, right);
  }
  return { steps, leaf: v, code: facts.leafClass[v - nNodes], at };
}

function route(values) {
  const point = scaled(values);
  return walk((t) => distance(t, point));
}

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
  odds[way.code] = Math.max(odds[way.code], others + rule.lead);
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

/** Length of the weights of a node over the features that `free` admits. */
function norm(t, free = () => true) {
  const node = facts.nodes[t];
  return Math.sqrt(node.w.reduce((sum, w, k) => sum + (free(node.at[k]) ? w * w : 0), 0));
}

/** The distance beyond a hyperplane at which a point is placed, larger than rounding errors. */
function clearance(t) {
  const node = facts.nodes[t];
  const size = 1 + Math.abs(node.b) + node.w.reduce((sum, w) => sum + Math.abs(w), 0);
  return 4 * node.tie + 1e-7 * size;
}
