"use strict";

/* The page: the tree, the chosen split, the new sample. */

const by = (id) => document.getElementById(id);
const rules = facts.outline.rules;
const children = facts.outline.children;
const items = new Map();
const cards = new Map();
let curves = new Map();
const inputs = new Map();
const locks = new Map();
const unitWords = facts.scaled ? "scaled units (the range of a feature in training is 1)" : "the units of the data";
const state = { chosen: facts.outline.root, way: null };

// -- the tree ---------------------------------------------------------------------------------------------------------

function buildTree() {
  const tree = element("ul", { role: "tree", "aria-labelledby": "tree-title", class: "tree" }, item(facts.outline.root, 1, null));
  by("stage").append(tree);
  by("stage").classList.add(`levels-${Math.min(4, levels(facts.outline.root))}`);
  tree.addEventListener("keydown", moveFocus);
  tree.addEventListener("click", (event) => {
    const at = event.target.closest("[role=treeitem]");
    if (at) choose(Number(at.dataset.node), true);
  });
}

function levels(v) {
  return children[v] ? 1 + Math.max(...children[v].map(levels)) : 0;
}

function item(v, level, turn) {
  const below = children[v];
  const made = element("li", {
    role: "treeitem", "aria-level": level, "aria-selected": "false", tabindex: "-1",
    "aria-label": itemWords(v, turn), data: { node: v },
  });
  if (below) made.setAttribute("aria-expanded", "true");
  const card = below ? splitCard(v) : leafCard(v);
  made.append(turn ? element("span", { class: "turn", "aria-hidden": "true", text: turn }) : "", card);
  items.set(v, made);
  cards.set(v, card);
  if (below) {
    // As in the text: what meets the rule comes first.
    made.append(element("ul", { role: "group" }, item(below[1], level + 1, "yes"), item(below[0], level + 1, "no")));
  }
  return made;
}

function itemWords(v, turn) {
  const answer = turn ? `${turn}: ` : "";
  const what = children[v] ? `node ${v}, ${briefRule(v)}` : `leaf ${v}, ${labelOf(v)}`;
  return `${answer}${what}, ${sampleWords(v)}`;
}

function labelOf(v) {
  return facts.classes[facts.leafClass[v - nNodes]];
}

/** A rule of one feature in full, of more by its heaviest. */
function briefRule(t) {
  const rule = rules[t];
  if (rule.features.length === 1) return rule.words.replace(">=", "\u2265").replace("<=", "\u2264");
  return `${facts.features[rule.features[0]].name} and ${rule.features.length - 1} more`;
}

function splitCard(t) {
  return element("div", { class: "card split", title: briefRule(t) },
    element("span", { class: "top" },
      element("b", { text: `[${t}]` }), element("span", { class: "h" }), element("span", { class: "n", text: total(t) ? count(total(t)) : "" })),
    element("span", { class: "rule", text: briefRule(t) }),
    shareBar(t));
}

function leafCard(v) {
  return element("div", { class: `card leaf class-${facts.leafClass[v - nNodes]}${total(v) ? "" : " empty"}`, title: labelOf(v) },
    element("span", { class: "top" },
      element("b", { text: labelOf(v) }), element("span", { class: "n", text: total(v) ? count(total(v)) : "0" })),
    shareBar(v));
}

function moveFocus(event) {
  const at = document.activeElement.closest("[role=treeitem]");
  if (!at) return;
  const order = [...by("stage").querySelectorAll("[role=treeitem]")];
  const k = order.indexOf(at);
  const target = {
    ArrowDown: order[k + 1],
    ArrowUp: order[k - 1],
    ArrowRight: at.querySelector("[role=treeitem]"),
    ArrowLeft: at.parentElement.closest("[role=treeitem]"),
    Home: order[0],
    End: order[order.length - 1],
  }[event.key];
  const chooses = event.key === "Enter" || event.key === " ";
  if (target === undefined && !chooses) return;
  event.preventDefault();
  if (target || chooses) choose(Number((target || at).dataset.node), true);
}

function choose(v, focus) {
  items.get(state.chosen).setAttribute("aria-selected", "false");
  items.get(state.chosen).tabIndex = -1;
  state.chosen = v;
  items.get(v).setAttribute("aria-selected", "true");
  items.get(v).tabIndex = 0;
  if (focus) items.get(v).focus({ preventScroll: false });
  showNode();
}

function redrawBranches() {
  curves = drawBranches(by("stage"), by("branches"), cards);
  showPath();
}

/** Marks the cards and branches on the sample's way. */
function showPath() {
  const way = state.way;
  const path = new Set(way ? [...way.steps.map((step) => step.node), way.leaf] : []);
  items.forEach((made, v) => {
    cards.get(v).classList.toggle("on", path.has(v));
    const h = cards.get(v).querySelector(".h");
    const step = way && way.steps.find((one) => one.node === v);
    if (h) h.textContent = step ? `h ${signed(step.h)}` : "";
  });
  curves.forEach((curve, v) => {
    curve.classList.toggle("on", path.has(v));
    // What is drawn last lies on top.
    if (path.has(v)) by("branches").append(curve);
  });
}

// -- the chosen split -------------------------------------------------------------------------------------------------

function showNode() {
  const v = state.chosen;
  by("node-title").textContent = children[v] ? `Split at node ${v}` : `Leaf ${v}: ${labelOf(v)}`;
  by("node").replaceChildren(...(children[v] ? splitDetails(v) : leafDetails(v)));
}

function leafDetails(v) {
  const wrong = total(v) - facts.counts[v][facts.leafClass[v - nNodes]];
  const parts = [element("p", {}, "Samples that end here get the label ", element("b", { text: labelOf(v) }), ".")];
  parts.push(element("p", { text: `${cap(sampleWords(v))}${total(v) ? `; ${count(wrong)} of them bear another label.` : "."}` }));
  return parts;
}

function splitDetails(t) {
  const [left, right] = children[t];
  const step = state.way && state.way.steps.find((one) => one.node === t);
  const drawing = histogram(t, step ? step.h : null);
  return [
    element("p", { class: "formula", text: `Yes if ${formula(t)}` }),
    rules[t].leftOut ? element("p", { class: "quiet", text: `${rules[t].leftOut} features of negligible weight are left out here.` }) : null,
    element("h3", { text: "Samples" }),
    element("ul", { class: "plain" },
      element("li", { text: `${cap(sampleWords(t))} (counted on ${facts.counted})` }),
      element("li", { text: `yes: ${sampleWords(right)}` }),
      element("li", { text: `no: ${sampleWords(left)}` })),
    drawing,
    element("h3", { text: "Margin" }),
    element("p", { text: marginWords(t) }),
    element("h3", { id: "weights-title", text: "Weights" }),
    weightTable(t, Boolean(step)),
  ].filter((part) => part !== null);
}

/** The rule in the user's units; long ones by their heaviest terms, the table below has them all. */
function formula(t) {
  const { features, weights: numbers, threshold } = rules[t];
  if (features.length === 1) return briefRule(t);
  const shown = features.length > 8 ? 6 : features.length;
  const terms = features.slice(0, shown).map((j, k) => {
    const minus = numbers[k].startsWith("-");
    const sign = (minus ? "\u2212" : k ? "+" : "") + (k ? " " : "");
    return `${sign}${numbers[k].replace("-", "")} \u00b7 ${facts.features[j].name}`;
  });
  if (shown < features.length) terms.push(`+ ${features.length - shown} more terms`);
  return `${terms.join(" ")} \u2265 ${threshold.replace("-", "\u2212")}`;
}

function marginWords(t) {
  const size = norm(t);
  const node = facts.nodes[t];
  const first = `The margin reaches ${short(1 / size, 3)} to either side of the hyperplane, in ${unitWords}`;
  const single = node.at.length === 1 && facts.scaled
    ? `, which is ${short(Math.abs(facts.scale[node.at[0]] / node.w[0]), 3)} of ${facts.features[node.at[0]].name}` : "";
  const data = facts.samples
    ? ` ${facts.samples.within[t]} of the samples lie within it, ${facts.samples.support[t]} are support vectors.` : "";
  return `${first}${single}.${data}`;
}

/** Weights in both units; with a sample on its way here also its values and what they add to h. */
function weightTable(t, withSample) {
  const node = facts.nodes[t];
  const heads = ["feature", "weight", ...(facts.scaled ? ["scaled"] : []), "", ...(withSample ? ["sample", "adds to h"] : [])];
  const order = node.at.map((j, k) => ({ j, w: node.w[k] })).sort((p, q) => Math.abs(q.w) - Math.abs(p.w));
  const most = Math.abs(order[0].w);
  const values = withSample ? readSample().values : null;
  const rows = order.map(({ j, w }) => {
    const cells = [
      element("th", { scope: "row", text: facts.features[j].name }),
      element("td", { text: short(w / facts.scale[j]) }),
      facts.scaled ? element("td", { text: short(w, 3) }) : null,
      element("td", { class: "bars", "aria-hidden": "true" }, weightBar(w / most)),
    ].filter((cell) => cell !== null);
    if (withSample) {
      const part = (w * (values[j] - facts.offset[j])) / facts.scale[j];
      cells.push(element("td", { text: exact(values[j]) }), element("td", { text: signed(part) }));
    }
    return element("tr", {}, ...cells);
  });
  if (withSample) {
    const empty = heads.slice(2).map(() => element("td"));
    rows.push(element("tr", {}, element("th", { scope: "row", text: "constant" }), ...empty, element("td", { text: signed(node.b) })));
  }
  return element("div", { class: "scroll tall", tabindex: "0", role: "region", "aria-labelledby": "weights-title" },
    element("table", {}, element("thead", {}, headRow(heads)), element("tbody", {}, ...rows)));
}

function weightBar(share) {
  const bar = element("span", { class: "weight" });
  const part = element("span");
  part.style.width = `${50 * Math.abs(share)}%`;
  part.style.left = share < 0 ? `${50 - 50 * Math.abs(share)}%` : "50%";
  bar.append(part);
  return bar;
}

function headRow(heads) {
  return element("tr", {}, ...heads.map((head) => (head ? element("th", { scope: "col", text: head }) : element("td", { "aria-hidden": "true" }))));
}

function cap(words) {
  return words[0].toUpperCase() + words.slice(1);
}

// -- the new sample ---------------------------------------------------------------------------------------------------

function buildForm() {
  const most = facts.features.map((_, j) => Math.max(0, ...facts.nodes.map((_, t) => Math.abs(weightOf(t, j)))));
  const order = facts.features.map((_, j) => j).sort((p, q) => most[q] - most[p]);
  const used = order.filter((j) => most[j] > 0);
  const unused = order.filter((j) => most[j] === 0);
  by("fields").append(...used.map((j) => field(j, true)));
  if (unused.length) {
    by("unused").hidden = false;
    by("unused").querySelector("summary").textContent = `${unused.length} features that no split uses`;
    by("unused").querySelector(".fields").append(...unused.map((j) => field(j, false)));
  }
  by("form").addEventListener("input", (event) => { if (event.target.id !== "paste") update(); });
  by("form").addEventListener("submit", (event) => event.preventDefault());
  by("reset").addEventListener("click", () => { fill(facts.features.map((f) => f.start)); });
  by("paste").addEventListener("change", pasteRow);
}

function field(j, lockable) {
  const feature = facts.features[j];
  const input = element("input", { type: "number", step: "any", id: `x${j}`, value: feature.start, required: "" });
  inputs.set(j, input);
  const range = feature.low === null ? null
    : element("small", { id: `range${j}`, class: "quiet", text: rangeWords(feature) });
  if (range) input.setAttribute("aria-describedby", range.id);
  const made = element("div", { class: "field" }, element("label", { for: input.id, text: feature.name }), input);
  const foot = element("span", { class: "foot" }, range);
  if (lockable) {
    const lock = element("input", { type: "checkbox", id: `lock${j}`, "aria-label": `keep ${feature.name} as it is` });
    locks.set(j, lock);
    foot.append(element("label", { class: "lock no-print", for: lock.id, title: "leave this feature out when looking for changes" }, lock, "keep"));
  }
  made.append(foot);
  return made;
}

/** Both ends with as many digits as it takes to tell them apart. */
function rangeWords({ low, high }) {
  const size = Math.max(Math.abs(low), Math.abs(high)) / (high - low);
  const digits = Number.isFinite(size) ? Math.min(12, 3 + Math.max(0, Math.ceil(Math.log10(size)))) : 6;
  return `${short(low, digits)} to ${short(high, digits)}`;
}

function fill(values) {
  values.forEach((x, j) => { inputs.get(j).value = x; });
  update();
}

function pasteRow() {
  const words = by("paste").value.trim();
  if (!words) return;
  const values = words.split(/[\s,;]+/).map(Number);
  const wrong = values.length !== facts.features.length || values.some((x) => !Number.isFinite(x));
  by("paste").setAttribute("aria-invalid", String(wrong));
  by("paste-help").textContent = wrong
    ? `That were ${values.length} entries; ${facts.features.length} numbers are needed, with a point as decimal mark.`
    : "Taken over.";
  if (!wrong) fill(values);
}

/** The values entered, and the features whose entry is no number. */
function readSample() {
  const values = facts.features.map((_, j) => (inputs.get(j).value.trim() === "" ? NaN : Number(inputs.get(j).value)));
  const missing = facts.features.map((_, j) => j).filter((j) => !Number.isFinite(values[j]));
  return { values, missing };
}

function isFree(j) {
  return !(locks.has(j) && locks.get(j).checked);
}

function update() {
  const { values, missing } = readSample();
  inputs.forEach((input, j) => input.setAttribute("aria-invalid", String(missing.includes(j))));
  state.way = missing.length ? null : route(values);
  showPath();
  showNode();
  if (missing.length) {
    const names = missing.map((j) => facts.features[j].name).join(", ");
    by("result").replaceChildren(element("p", { class: "warning", text: `A number is needed for: ${names}` }));
    by("way").replaceChildren();
    by("flip").replaceChildren();
    return;
  }
  showResult();
  showWay();
  showFlips(values);
}

function showResult() {
  const { way } = state;
  const parts = ["Predicted: ", swatch(way.code), element("b", { text: facts.classes[way.code], id: "label" })];
  if (facts.classes.length === 2) {
    parts.push(element("span", { class: "quiet", text: ` decision value ` }), element("span", { id: "decision", text: signed(decision(way), 4) }));
  }
  by("result").replaceChildren(element("p", { class: `verdict class-${way.code}` }, ...parts));
}

function showWay() {
  const heads = ["node", "h", "distance", "then"];
  const rows = state.way.steps.filter((step) => facts.nodes[step.node].at.length).map((step) =>
    element("tr", { data: { node: step.node } },
      element("th", { scope: "row", text: `[${step.node}]` }),
      element("td", { text: signed(step.h, 4) }),
      element("td", { text: short(Math.abs(step.h) / norm(step.node), 3) }),
      element("td", { text: step.right ? "yes" : "no" })));
  const foot = element("caption", { text: `h: 0 is the hyperplane, 1 the margin. Distances are in ${unitWords}.` });
  by("way").replaceChildren(foot, element("thead", {}, headRow(heads)), element("tbody", {}, ...rows));
}

function showFlips(values) {
  const nearest = nearestFlip(values, isFree);
  const singles = singleFlips(values, isFree);
  by("flip").replaceChildren(
    element("h4", { text: "One feature alone" }), ...singleWords(values, singles),
    element("h4", { text: "All features together" }), ...nearestWords(values, nearest),
    element("p", { class: "quiet", text: `Sizes are in ${unitWords}; together they add up as a straight-line distance. `
      + "Values shown lie just beyond the point where the label changes." }));
}

function singleWords(values, flips) {
  if (!flips.length) return [element("p", { text: "No change of a single feature gives another label." })];
  const table = (some) => element("table", {}, element("thead", {}, headRow(["feature", "from", "to", "size", "label"])),
    element("tbody", {}, ...some.map((flip) => flipRow(values, flip))));
  const parts = [element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Changes of one feature" }, table(flips.slice(0, 6)))];
  if (flips.length > 6) {
    parts.push(element("details", {}, element("summary", { text: `${flips.length - 6} more` }),
      element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "More changes of one feature" }, table(flips.slice(6)))));
  }
  return parts;
}

function flipRow(values, flip) {
  return element("tr", { data: { feature: flip.feature, to: flip.to, code: flip.code } },
    element("th", { scope: "row", text: facts.features[flip.feature].name }),
    element("td", { text: exact(values[flip.feature]) }),
    element("td", { text: exact(flip.to) + outside(flip.feature, flip.to) }),
    element("td", { text: short(Math.abs(flip.shift), 3) }),
    element("td", { text: facts.classes[flip.code] }));
}

function outside(j, x) {
  const { low, high } = facts.features[j];
  return low !== null && (x < low || x > high) ? " (out of range)" : "";
}

function nearestWords(values, nearest) {
  if (!nearest) return [element("p", { text: "No change of the features that may change gives another label." })];
  const moved = values.map((x, j) => ({ j, size: Math.abs(nearest.values[j] - x) / facts.scale[j] }))
    .filter(({ size }) => size > 0).sort((p, q) => q.size - p.size);
  const rows = moved.map(({ j, size }) => element("tr", { data: { feature: j, to: nearest.values[j] } },
    element("th", { scope: "row", text: facts.features[j].name }),
    element("td", { text: exact(values[j]) }),
    element("td", { text: exact(nearest.values[j]) + outside(j, nearest.values[j]) }),
    element("td", { text: short(size, 3) })));
  const button = element("button", { type: "button", class: "no-print", text: "Put these values in" });
  button.addEventListener("click", () => fill(nearest.values));
  return [
    element("p", { data: { length: nearest.length, code: nearest.code } },
      `The smallest change to another label has size ${short(nearest.length, 3)} and leads to `,
      element("b", { text: facts.classes[nearest.code] }), ` (leaf ${nearest.leaf}).`),
    element("div", { class: "scroll tall", tabindex: "0", role: "region", "aria-label": "The smallest change" },
      element("table", {}, element("thead", {}, headRow(["feature", "from", "to", "size"])), element("tbody", {}, ...rows))),
    button,
  ];
}

// -- all of it --------------------------------------------------------------------------------------------------------

function buildHead() {
  by("legend").append(...facts.classes.map((label, k) => element("li", {}, swatch(k), label)));
  if (!facts.certificate) return;
  by("proof").textContent = `Proved: ${facts.certificate.proved}.`;
  by("certificate").hidden = false;
  by("certificate").querySelector("pre").textContent = facts.certificate.words;
}

buildHead();
buildTree();
buildForm();
choose(facts.outline.root, false);
update();
new ResizeObserver(redrawBranches).observe(by("stage"));

/* For scripts: the same arithmetic without the page. */
window.margotree = { facts, route, decision, singleFlips, nearestFlip, fill };
