"use strict";

/* The smallest changes that give a sample another answer, or a chosen one, measured in scaled units: a feature's whole range
   is 1.

   One feature alone: along that feature the answer can get what is wanted only where some h_t passes 0, or where the formula
   of a leaf passes the wanted number, so the nearest such place behind which the answer is as wanted is the result.  Of a
   choice every other word is tried: there is nothing between them.

   All features together: the samples of a leaf fill a polyhedron, one half-space for each split above it (and one where the
   formula of the leaf gives the wanted number).  Its point
   nearest to the sample is where some of those splits are just met and their multipliers are not negative
   (Karush, Kuhn, Tucker).  A leaf has few splits above it, so every choice of met splits is tried, the smallest first.
   Words are not moved but exchanged: the numbers' nearest point is sought for every combination of words. */

/** The largest number of combinations of words that are tried; with more, words are kept. */
const mostCombinations = 512;

/** For each free feature the nearest value that changes the answer (to `target`, if one is chosen), or the nearest word of a
    choice; those that cannot change it are left out. */
function singleFlips(values, isFree, target = null) {
  const point = scaled(values);
  const h = facts.nodes.map((_, t) => distance(t, point));
  const goal = answers.goalOf(walk((t) => h[t]), target);
  const crossings = crossingsOf(h);
  goal.shiftsOf(h).forEach(([j, shift]) => crossings.has(j) ? crossings.get(j).push(shift) : crossings.set(j, [shift]));
  const found = [];
  for (const [j, places] of crossings) {
    if (!isFree(j) || !isMovable(j, values)) continue;
    places.sort((a, b) => Math.abs(a) - Math.abs(b));
    const shift = places.find((s) => goal.holds(walk((t) => h[t] + s * weightOf(t, j))));
    if (shift === undefined) continue;
    const flip = settled(values, new Map([[j, shift]]), goal);
    if (flip) found.push({ feature: j, shift, to: flip.values[j], ...answers.in(flip) });
  }
  facts.columns.forEach((column) => { if (column.options && isFree(column.features[0])) found.push(...wordFlip(values, column, goal)); });
  return found.sort((a, b) => Math.abs(a.shift) - Math.abs(b.shift));
}

/** Whether a feature can be moved: the value of a number that is known, not what says that a cell was missing. */
function isMovable(j, values) {
  const column = facts.columns[columnOf.get(j)];
  return !column.options && column.features[0] === j && !isMissing(column, values);
}

/** The nearest other word of a choice that gives the wanted answer; none or one. */
function wordFlip(values, column, goal) {
  return otherWords(values, column)
    .map((change) => ({ feature: column.features[0], shift: change.size, to: change.word, ...answers.in(route(change.values)) }))
    .filter((flip) => goal.holds(flip))
    .sort((a, b) => a.shift - b.shift)
    .slice(0, 1);
}

/** The sample with each other word of a choice, and how far that is. */
function otherWords(values, column) {
  const now = optionAt(column, values);
  return column.options.map((option, k) => ({ option, k })).filter(({ option, k }) => k !== now && !option.missing).map(({ option }) => {
    const moved = [...values];
    column.features.forEach((j, i) => { moved[j] = option.values[i]; });
    const size = Math.hypot(...column.features.map((j) => (moved[j] - values[j]) / facts.scale[j]));
    return { word: option.word, values: moved, size };
  });
}

/** The sample with every combination of words of the choices that may change and that are used, nearest first; null
    if there are too many. */
function combinations(values, isFree) {
  const used = facts.columns.filter((column) => column.options && isFree(column.features[0])
    && column.features.some((j) => facts.nodes.some((_, t) => weightOf(t, j))));
  if (used.reduce((n, column) => n * column.options.length, 1) > mostCombinations) return null;
  let all = [{ values, size: 0 }];
  for (const column of used) {
    all = all.flatMap((one) => [one, ...otherWords(one.values, column).map((change) => (
      { values: change.values, size: Math.hypot(one.size, change.size) }))]);
  }
  return all.sort((a, b) => a.size - b.size);
}

/** By feature, the shifts (in scaled units) that move some h slightly beyond 0, to either side. */
function crossingsOf(h) {
  const places = new Map();
  facts.nodes.slice(0, nNodes).forEach((node, t) => {
    const beyond = clearance(t);
    node.at.forEach((j, k) => {
      if (!places.has(j)) places.set(j, []);
      places.get(j).push((beyond - h[t]) / node.w[k], (-beyond - h[t]) / node.w[k]);
    });
  });
  return places;
}

const weights = facts.nodes.map((node) => new Map(node.at.map((j, k) => [j, node.w[k]])));

function weightOf(t, j) {
  return weights[t].get(j) || 0;
}

/** The nearest point with another answer (with `target`, if one is chosen) over the free features, or null if no
    change of them gets there; `held` tells that words were not tried, as there are too many combinations of them. */
function nearestFlip(values, isFree, target = null) {
  const goal = answers.goalOf(route(values), target);
  const leaves = leavesOf(goal);
  const moves = (j) => isFree(j) && isMovable(j, values);
  const tried = combinations(values, isFree);
  let best = null;
  for (const start of tried || [{ values, size: 0 }]) {
    if (best && start.size >= best.length) break;
    best = nearestFrom(start, goal, leaves, moves, best);
  }
  return best && { ...best, held: tried === null };
}

/** The nearest point among those that share the words of `start`, if it is nearer than `best`. */
function nearestFrom(start, goal, leaves, moves, best) {
  const here = route(start.values);
  if (goal.holds(here)) return { length: start.size, values: start.values, leaf: here.leaf, ...answers.in(here) };
  const point = scaled(start.values);
  for (const leaf of leaves) {
    const rows = halfSpaces(leaf.turns, point, moves);
    if (rows === null || (best && Math.hypot(start.size, bound(rows)) >= best.length)) continue;
    const change = project(rows);
    const length = change ? Math.hypot(start.size, change.length) : Infinity;
    if (change && (!best || length < best.length)) {
      const flip = settled(start.values, change.shift, goal);
      if (flip) best = { length, values: flip.values, leaf: leaf.leaf, ...answers.in(flip) };
    }
  }
  return best;
}

/** Leaves with an answer to reach, each with the path that leads to it. */
function leavesOf(goal) {
  const found = [];
  const visit = (v, turns) => {
    if (v >= nNodes) {
      const more = goal.turnsAt(v);
      if (more) found.push({ leaf: v, turns: [...turns, ...more] });
      return;
    }
    const node = facts.nodes[v];
    const open = node.at.length ? [false, true] : [goesRight(v, node.b)];
    for (const right of open) visit(childOf(v, right), node.at.length ? [...turns, { t: v, right }] : turns);
  };
  visit(0, []);
  return found;
}

/** One row per step, `a . change >= need`; null if a step on which the free features have no effect goes the other way.  A
    step passes h = 0, or another `level` of it. */
function halfSpaces(turns, point, isFree) {
  const rows = [];
  for (const { t, right, level = 0 } of turns) {
    const side = right ? 1 : -1;
    const h = distance(t, point) - level;
    const need = clearance(t) - side * h;
    const a = new Map();
    facts.nodes[t].at.forEach((j, k) => { if (isFree(j)) a.set(j, side * facts.nodes[t].w[k]); });
    if (a.size) rows.push({ a, need, slack: clearance(t) / 4, size: norm(t, isFree) });
    else if (goesRight(t, h) !== right) return null;
  }
  return rows;
}

/** No point of the polyhedron is nearer than its farthest half-space. */
function bound(rows) {
  return Math.max(0, ...rows.map((row) => row.need / row.size));
}

/** The shortest change that meets all rows; null if none does. */
function project(rows) {
  const gram = rows.map((p) => rows.map((q) => dot(p.a, q.a)));
  for (const met of subsets(rows.length)) {
    const lambda = solve(met.map((k) => met.map((l) => gram[k][l])), met.map((k) => rows[k].need));
    if (lambda === null || lambda.some((l) => l < 0)) continue;
    const reached = (k) => met.reduce((sum, l, i) => sum + gram[k][l] * lambda[i], 0);
    if (rows.every((row, k) => met.includes(k) || reached(k) >= row.need - row.slack)) {
      return combined(rows, met, lambda);
    }
  }
  return null;
}

function combined(rows, met, lambda) {
  const shift = new Map();
  met.forEach((k, i) => rows[k].a.forEach((a, j) => shift.set(j, (shift.get(j) || 0) + lambda[i] * a)));
  const length = Math.sqrt([...shift.values()].reduce((sum, s) => sum + s * s, 0));
  return { shift, length };
}

function dot(p, q) {
  let sum = 0;
  p.forEach((value, j) => { if (q.has(j)) sum += value * q.get(j); });
  return sum;
}

const knownSubsets = new Map();

/** All sets of the numbers below n but the empty one, small ones first. */
function subsets(n) {
  if (!knownSubsets.has(n)) {
    const all = [];
    for (let bits = 1; bits < 2 ** n; bits++) all.push([...Array(n).keys()].filter((k) => bits & (1 << k)));
    knownSubsets.set(n, all.sort((a, b) => a.length - b.length));
  }
  return knownSubsets.get(n);
}

/** Gaussian elimination with pivots; null if the rows are linearly dependent. */
function solve(matrix, right) {
  const n = right.length;
  const rows = matrix.map((row, k) => [...row, right[k]]);
  const size = Math.max(...matrix.map((row, k) => row[k]));
  for (let c = 0; c < n; c++) {
    let pivot = c;
    for (let r = c + 1; r < n; r++) if (Math.abs(rows[r][c]) > Math.abs(rows[pivot][c])) pivot = r;
    if (Math.abs(rows[pivot][c]) <= 1e-12 * size) return null;
    [rows[c], rows[pivot]] = [rows[pivot], rows[c]];
    for (let r = 0; r < n; r++) {
      if (r === c) continue;
      const factor = rows[r][c] / rows[c][c];
      for (let k = c; k <= n; k++) rows[r][k] -= factor * rows[c][k];
    }
  }
  return rows.map((row, k) => row[n] / row[k]);
}

/** The shifted sample in the user's units, as short as it can be written while its answer is one looked for; null if
    rounding misses that at every length. */
function settled(values, shift, goal) {
  for (const digits of [2, 3, 4, 6, 8, null]) {
    const moved = [...values];
    shift.forEach((s, j) => {
      const change = s * facts.scale[j];
      moved[j] = facts.features[j].date ? wholeDay(values[j] + change, change) : rounded(values[j], change, digits);
    });
    const now = route(moved);
    if (goal.holds(now)) return { values: moved, ...answers.in(now) };
  }
  return null;
}

/** A number of days, rounded in the direction of the change. */
function wholeDay(days, change) {
  return change > 0 ? Math.ceil(days) : Math.floor(days);
}

/** `from + change`, rounded away from `from` at the given digit of the change. */
function rounded(from, change, digits) {
  const target = from + change;
  if (digits === null || change === 0) return target;
  const place = digits - Math.floor(Math.log10(Math.abs(change)));
  if (place > 15 || place < -15) return target;
  const unit = 10 ** Math.abs(place);
  const steps = place >= 0 ? target * unit : target / unit;
  const whole = change > 0 ? Math.ceil(steps) : Math.floor(steps);
  const found = place >= 0 ? whole / unit : whole * unit;
  return Number.isFinite(found) ? found : target;
}
