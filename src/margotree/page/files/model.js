"use strict";

/* The tree as a function: arithmetic on the facts, independent of the page. */

const facts = JSON.parse(document.getElementById("facts").textContent);
const nNodes = facts.nSplits;

/** Values in scaled units; `given` are the values in the units of the user. */
function scaled(values) {
  const point = values.map((x, j) => (x - facts.offset[j]) / facts.scale[j]);
  point.given = values;
  return point;
}

/** h of node t: its sign is the side, its size the distance in margins; of a leaf of a tree of numbers its formula, in scaled
    units of the target. */
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

/** Walks down with the h that `at(t)` gives: the steps, the leaf and its answer. */
function walk(at) {
  const steps = [];
  let v = 0;
  while (v < nNodes) {
    const h = at(v);
    const right = goesRight(v, h);
    steps.push({ node: v, h, right });
    v = childOf(v, right);
  }
  return { steps, leaf: v, at, ...answers.at(v, at) };
}

function route(values) {
  const point = scaled(values);
  return walk((t) => distance(t, point));
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
