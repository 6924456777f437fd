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
/* The text beside a branch; it must not be the name of a class. */
const MET = "met";
const NOT_MET = "not met";
const unitWords = facts.scaled ? "scaled units (the range of a feature in training is 1)" : "the units of the data";
/* The largest number of changes that are said in words. */
const mostChanges = 3;
/* The largest number of values in a sentence about changes of several. */
const mostTogether = 4;
const state = { chosen: facts.outline.root, way: null, width: null };

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
    made.append(element("ul", { role: "group" }, item(below[1], level + 1, MET), item(below[0], level + 1, NOT_MET)));
  }
  return made;
}

function itemWords(v, turn) {
  const answer = turn ? `rule ${turn}: ` : "";
  const what = children[v] ? `node ${v}, ${briefRule(v)}` : `leaf ${v}, ${answers.leafTitle(v)}`;
  return `${answer}${what}, ${sampleWords(v)}`;
}

/** The last card on the path of a sample: its leaf, or the node that is drawn as one. */
function endOf(way) {
  return [...way.steps.map((step) => step.node), way.leaf].filter((v) => cards.has(v)).pop();
}

function withSigns(words) {
  return words.replace(/>= (\S+)$/, "\u2265 $1").replace(/<= (\S+)$/, "\u2264 $1");
}

/** A rule of few features in full, of more by its heaviest. */
function briefRule(t) {
  const rule = rules[t];
  const columns = rule.by_column.length;
  if (rule.features.length <= 3 || rule.logic || (columns && columns <= 3 && rule.words.length <= 150)) return formula(t);
  return `${facts.features[rule.features[0]].name} and ${rule.features.length - 1} more`;
}

function splitCard(t) {
  return element("div", { class: "card split", title: briefRule(t) },
    element("span", { class: "top" },
      element("b", { class: "detail", text: `[${t}]` }), element("span", { class: "h detail" }), element("span", { class: "n", text: total(t) ? count(total(t)) : "" })),
    element("span", { class: "rule", text: briefRule(t) }),
    shareBar(t));
}

function leafCard(v) {
  return element("div", { class: `card leaf ${answers.leafStyle(v)}${total(v) ? "" : " empty"}`, title: answers.leafTitle(v) },
    element("span", { class: "top" },
      element("b", { text: answers.leafHead(v) }), element("span", { class: "n", text: total(v) ? count(total(v)) : "0" })),
    answers.leafRule(v),
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

/** Places the cards side by side if the page is wide enough, else one below the other; returns whether the width has
    changed. */
function layOut() {
  const stage = by("stage");
  if (stage.clientWidth === state.width) return false;
  state.width = stage.clientWidth;
  by("branches").style.width = "0";
  stage.classList.remove("vertical");
  stage.classList.toggle("vertical", !state.printing && stage.scrollWidth > stage.clientWidth);
  return true;
}

/** On paper the cards of a tree of few levels are side by side, whatever the window: its style shrinks them. */
function layOutForPrint(printing) {
  state.printing = printing && [1, 2, 3, 4].some((n) => by("stage").classList.contains(`levels-${n}`));
  state.width = null;
  redrawBranches();
}

function redrawBranches() {
  if (layOut()) showNode();
  curves = drawBranches(by("stage"), by("branches"), cards);
  showPath();
}

/** Marks the cards and branches on the path of the sample. */
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
  by("node-title").textContent = children[v] ? `Split at node ${v}` : `Leaf ${v}${answers.leafHeading(v)}`;
  by("node").replaceChildren(...(children[v] ? splitDetails(v) : answers.leafDetails(v)));
}

function splitDetails(t) {
  const [left, right] = children[t];
  const step = state.way && state.way.steps.find((one) => one.node === t);
  const drawing = histogram(t, step ? step.h : null);
  return [
    element("p", { class: "formula", text: `Met if ${formula(t)}` }),
    rules[t].wanted ? element("p", { class: "wanted", text: `${cap(rules[t].wanted)}.` }) : null,
    rules[t].leftOut ? element("p", { class: "quiet", text: `${rules[t].leftOut} features of negligible weight are left out here.` }) : null,
    element("h3", { text: "Samples" }),
    element("ul", { class: "plain" },
      element("li", { text: `${cap(sampleWords(t))} (counted on ${facts.counted})` }),
      element("li", { text: `rule ${MET}: ${sampleWords(right)}` }),
      element("li", { text: `rule ${NOT_MET}: ${sampleWords(left)}` })),
    drawing,
    element("h3", { text: "Margin" }),
    element("p", { text: marginWords(t) }),
    element("h3", { id: "weights-title", text: "Weights" }),
    weightTable(t, Boolean(step)),
  ].filter((part) => part !== null);
}

/** The rule in the user's units; long ones by their heaviest terms, the table below has them all. */
function formula(t) {
  const { features, weights: numbers, threshold, relation } = rules[t];
  if (features.length === 1 || rules[t].logic || rules[t].by_column.length) return withSigns(rules[t].words);
  const shown = features.length > 8 ? 6 : features.length;
  const terms = features.slice(0, shown).map((j, k) => {
    const minus = numbers[k].startsWith("-");
    const sign = (minus ? "\u2212" : k ? "+" : "") + (k ? " " : "");
    const number = withoutSign(numbers[k]);
    return `${sign}${number === "1" ? "" : `${number} \u00b7 `}${facts.features[j].name}`;
  });
  if (shown < features.length) terms.push(`+ ${features.length - shown} more terms`);
  return `${terms.join(" ")} ${relation === "<=" ? "\u2264" : "\u2265"} ${threshold.replaceAll("-", "\u2212")}`;
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
    const cells = [facts.features[j].name, short(w / facts.scale[j]), ...(facts.scaled ? [short(w, 3)] : []), weightBar(w / most)];
    if (withSample) cells.push(exact(values[j]), signed((w * (values[j] - facts.offset[j])) / facts.scale[j]));
    return tableRow(heads, cells);
  });
  if (withSample) rows.push(tableRow(heads, ["constant", ...heads.slice(2).map(() => ""), signed(node.b)]));
  return element("div", { class: "scroll tall", tabindex: "0", role: "region", "aria-labelledby": "weights-title" }, table(heads, rows));
}

function weightBar(share) {
  const bar = element("span", { class: "weight" });
  const part = element("span");
  part.style.width = `${50 * Math.abs(share)}%`;
  part.style.left = share < 0 ? `${50 - 50 * Math.abs(share)}%` : "50%";
  bar.append(part);
  return bar;
}

/** Roles are spelled out because rows of a narrow table are laid out as blocks. */
function table(heads, rows) {
  return element("table", { role: "table" }, ...tableParts(heads, rows));
}

function tableParts(heads, rows) {
  const head = element("tr", { role: "row" }, ...heads.map((text) => (text
    ? element("th", { scope: "col", role: "columnheader", text }) : element("td", { "aria-hidden": "true" }))));
  return [element("thead", { role: "rowgroup" }, head), element("tbody", { role: "rowgroup" }, ...rows)];
}

/** A row: the first cell names it, an element among the cells is a drawing, and an empty one has nothing to say. */
function tableRow(heads, cells, data = {}) {
  return element("tr", { role: "row", data }, ...cells.map((cell, k) => {
    if (k === 0) return element("th", { scope: "row", role: "rowheader", text: cell });
    if (typeof cell !== "string") return element("td", { class: "bars", "aria-hidden": "true" }, cell);
    return element("td", { role: "cell", text: cell, ...(cell === "" ? { class: "blank" } : {}), data: { head: heads[k] } });
  }));
}

function cap(words) {
  return words[0].toUpperCase() + words.slice(1);
}

// -- the new sample ---------------------------------------------------------------------------------------------------

function buildForm() {
  const weight = (j) => Math.max(0, ...facts.nodes.map((_, t) => Math.abs(weightOf(t, j))));
  const most = facts.columns.map((column) => Math.max(...column.features.map(weight)));
  const order = facts.columns.map((_, c) => c).sort((p, q) => most[q] - most[p]);
  const used = order.filter((c) => most[c] > 0);
  const unused = order.filter((c) => most[c] === 0);
  by("fields").append(...used.map((c) => field(c, true)));
  if (unused.length) {
    by("unused").hidden = false;
    by("unused").querySelector("summary").textContent = `${unused.length} ${unused.length === 1 ? "feature" : "features"} that no split uses`;
    by("unused").querySelector(".fields").append(...unused.map((c) => field(c, false)));
  }
  answers.buildGoal();
  by("form").addEventListener("input", (event) => { if (event.target.id !== "paste") update(); });
  by("form").addEventListener("submit", (event) => event.preventDefault());
  by("reset").addEventListener("click", () => { fill(facts.features.map((f) => f.start)); });
  by("paste").addEventListener("change", pasteRow);
}

/** The field of a column, named after its first feature: a box for a number, a list for a choice. */
function field(c, lockable) {
  const column = facts.columns[c];
  const j = column.features[0];
  const input = column.options ? choiceBox(column) : numberBox(column);
  inputs.set(c, input);
  const made = element("div", { class: "field" }, element("label", { for: input.id, text: column.name }), input);
  const foot = element("span", { class: "foot" });
  if (!column.options && facts.features[j].low !== null) {
    foot.append(element("small", { id: `range${j}`, class: "quiet", text: rangeWords(facts.features[j]) }));
    input.setAttribute("aria-describedby", `range${j}`);
  }
  if (!column.options && column.missing !== null) input.placeholder = "not known";
  if (lockable) {
    const lock = element("input", { type: "checkbox", id: `lock${j}`, "aria-label": `keep ${column.name} as it is` });
    locks.set(c, lock);
    foot.append(element("label", { class: "lock no-print detail", for: lock.id, title: "leave this feature out when looking for changes" }, lock, "keep"));
  }
  made.append(foot);
  return made;
}

/** Not type=number, which takes a comma in some languages and drops it in others. */
function numberBox(column) {
  const j = column.features[0];
  const needed = column.missing === null ? { required: "" } : {};
  return element("input", { type: "text", inputmode: "decimal", id: `x${j}`, value: entryText(column, facts.features[j].start), ...needed });
}

function choiceBox(column) {
  const options = column.options.map((option, k) => element("option", { value: k, text: option.word }));
  const box = element("select", { id: `x${column.features[0]}` }, ...options);
  box.value = column.start;
  return box;
}

function fill(values) {
  facts.columns.forEach((column, c) => {
    const number = isMissing(column, values) ? "" : entryText(column, values[column.features[0]]);
    inputs.get(c).value = column.options ? optionAt(column, values) : number;
  });
  update();
}

function pasteRow() {
  const words = by("paste").value;
  if (!words.trim()) return;
  const { values, wrong } = readRow(words);
  by("paste").setAttribute("aria-invalid", String(!values));
  by("paste-help").textContent = values ? "Taken over." : wrong;
  if (values) fill(values);
}

/** The values entered, and the columns whose entry is no number. */
function readSample() {
  const values = facts.features.map(() => NaN);
  const missing = [];
  facts.columns.forEach((column, c) => {
    const entry = inputs.get(c).value;
    const read = column.options ? column.options[Number(entry)].values : readCell(column, entry);
    if (read !== null) column.features.forEach((j, k) => { values[j] = read[k]; });
    if (column.features.some((j) => !Number.isFinite(values[j]))) missing.push(c);
  });
  return { values, missing };
}

function isFree(j) {
  const lock = locks.get(columnOf.get(j));
  return !(lock && lock.checked);
}

function update() {
  const { values, missing } = readSample();
  const strange = markFields(values, missing);
  state.way = missing.length ? null : route(values);
  showPath();
  showNode();
  if (missing.length) {
    const names = missing.map((c) => facts.columns[c].name).join(", ");
    by("result").replaceChildren(element("p", { class: "warning", text: `A number is needed for: ${names}` }));
    for (const id of ["way", "flip", "why", "change"]) by(id).replaceChildren();
    return;
  }
  showResult(strange, values);
  showWhy(values);
  showWay();
  showFlips(values);
}

/** Marks entries that are no number or lie outside the training range; returns the columns of the latter. */
function markFields(values, missing) {
  const strange = [];
  facts.columns.forEach((column, c) => {
    const j = column.features[0];
    const beyond = !missing.includes(c) && isOutside(j, values[j]);
    if (beyond) strange.push(c);
    inputs.get(c).setAttribute("aria-invalid", String(missing.includes(c)));
    inputs.get(c).classList.toggle("outside", beyond);
    const range = by(`range${j}`);
    if (range) {
      range.textContent = `${beyond ? "outside " : ""}${rangeWords(facts.features[j])}`;
      range.className = beyond ? "warning" : "quiet";
    }
  });
  return strange;
}

function showResult(strange, values) {
  const shown = [element("p", { class: `verdict ${answers.style(state.way)}` }, ...answers.verdict(state.way, values))];
  if (strange.length) {
    const names = strange.map((c) => `${facts.columns[c].name} (${rangeWords(facts.features[facts.columns[c].features[0]])})`).join(", ");
    shown.push(element("p", { class: "warning", id: "strange", text: `Outside the range of training, so take the ${answers.noun} with care: ${names}` }));
  }
  by("result").replaceChildren(...shown);
}

/** A percentage that is 100 % or 0 % only if all or none are meant. */
function percent(share) {
  if (share === 1 || share === 0) return `${100 * share} %`;
  const rounded = Math.round(1000 * share) / 10;
  return rounded >= 100 ? "over 99.9 %" : rounded <= 0 ? "under 0.1 %" : `${rounded} %`;
}

function showWay() {
  const heads = ["node", "h", "distance", "rule"];
  const rows = state.way.steps.filter((step) => facts.nodes[step.node].at.length).map((step) => tableRow(heads, [
    `[${step.node}]`, signed(step.h, 4), short(Math.abs(step.h) / norm(step.node), 3), step.right ? MET : NOT_MET,
  ], { node: step.node }));
  const foot = element("caption", { text: `h: 0 is the hyperplane, 1 the margin. Distances are in ${unitWords}.` });
  by("way").replaceChildren(foot, ...tableParts(heads, rows));
}

function showFlips(values) {
  const words = answers.noGoal(state.way);
  if (words) {
    by("flip").replaceChildren(element("p", { text: words }));
    by("change").replaceChildren(element("li", { text: words }));
    return;
  }
  const nearest = nearestFlip(values, isFree, answers.target());
  const singles = singleFlips(values, isFree, answers.target());
  by("change").replaceChildren(...changeWords(values, singles, nearest).map((text) => element("li", { text })));
  by("flip").replaceChildren(
    element("h4", { text: "One feature alone" }), ...singleWords(values, singles),
    element("h4", { text: "All features together" }), ...nearestWords(values, nearest),
    element("p", { class: "quiet", text: `Sizes are in ${unitWords}; together they add up as a straight-line distance. `
      + ""
      + `Values shown lie just beyond the point where ${answers.reached}.` }));
}

/** The smallest changes as sentences: of single features, and of several together if no single one is enough, or always in
    trees of numbers. */
function changeWords(values, singles, nearest) {
  const found = singles.slice(0, mostChanges).map((flip) => {
    const c = columnOf.get(flip.feature);
    const to = facts.columns[c].options ? flip.to : changedText(facts.columns[c], flip.to) + outside(flip.feature, flip.to);
    return `With ${facts.columns[c].name} = ${to} instead of ${valueWords(c, values)}, ${answers.wouldBe(flip)}.`;
  });
  if (!nearest) return found.length ? found : [`No change of these values gives ${answers.goalWords()}.`];
  const moved = facts.columns.map((column, c) => c).filter((c) => facts.columns[c].features.some((j) => nearest.values[j] !== values[j]));
  const parts = moved.map((c) => `${facts.columns[c].name} = ${valueWords(c, nearest.values)}`
    + `${outside(facts.columns[c].features[0], nearest.values[facts.columns[c].features[0]])} instead of ${valueWords(c, values)}`);
  if (!found.length) return [`No single value is enough. With ${parts.join(" and ")}, ${answers.wouldBe(nearest)}.`];
  if (answers.alwaysTogether && moved.length > 1 && moved.length <= mostTogether) {
    found.push(`Smaller changes of several: with ${parts.join(" and ")}, ${answers.wouldBe(nearest)}.`);
  }
  return found;
}

/** The path as sentences; splits on which the answer cannot depend are left out. */
function showWhy(values) {
  const deciding = state.way.steps.filter((step) => rules[step.node] && facts.decides[step.node]);
  const reasons = deciding.map((step) => reasonWords(rules[step.node], values, step.right));
  const items = reasons.map((text) => element("li", { text }));
  by("why").replaceChildren(...items, ...answers.conclusion(state.way, values, reasons.length > 0));
}

function singleWords(values, flips) {
  if (!flips.length) return [element("p", { text: `No change of a single feature gives ${answers.goalWords()}.` })];
  const heads = ["feature", "from", "to", "size", answers.noun];
  const some = (part) => table(heads, part.map((flip) => flipRow(heads, values, flip)));
  const parts = [element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Changes of one feature" }, some(flips.slice(0, 6)))];
  if (flips.length > 6) {
    parts.push(element("details", {}, element("summary", { text: `${flips.length - 6} more` }),
      element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "More changes of one feature" }, some(flips.slice(6)))));
  }
  return parts;
}

function flipRow(heads, values, flip) {
  const c = columnOf.get(flip.feature);
  const to = facts.columns[c].options ? flip.to : changedText(facts.columns[c], flip.to) + outside(flip.feature, flip.to);
  const cells = [facts.columns[c].name, valueWords(c, values), to, short(Math.abs(flip.shift), 3), answers.text(flip)];
  return tableRow(heads, cells, { feature: flip.feature, to: flip.to, ...answers.in(flip) });
}

function outside(j, x) {
  return isOutside(j, x) ? " (out of range)" : "";
}

function nearestWords(values, nearest) {
  if (!nearest) return [element("p", { text: `No change of the features that may change gives ${answers.goalWords()}.` })];
  const heads = ["feature", "from", "to", "size"];
  const away = ({ features }) => Math.hypot(...features.map((j) => (nearest.values[j] - values[j]) / facts.scale[j]));
  const moved = facts.columns.map((column, c) => ({ c, size: away(column) })).filter(({ size }) => size > 0).sort((p, q) => q.size - p.size);
  const rows = moved.map(({ c, size }) => {
    const j = facts.columns[c].features[0];
    const to = valueWords(c, nearest.values);
    return tableRow(heads, [facts.columns[c].name, valueWords(c, values), to + outside(j, nearest.values[j]), short(size, 3)],
      { feature: j, to: facts.columns[c].options ? to : nearest.values[j] });
  });
  const button = element("button", { type: "button", class: "no-print", text: "Put these values in" });
  button.addEventListener("click", () => fill(nearest.values));
  return [
    element("p", { data: { length: nearest.length, ...answers.in(nearest) } },
      `The smallest change to ${answers.goalWords()} has size ${short(nearest.length, 3)} and leads to `,
      element("b", { text: answers.text(nearest) }), ` (leaf ${nearest.leaf}).`),
    nearest.held ? element("p", { class: "quiet", text: "Words were kept as they are: there are too many combinations of them to try." }) : "",
    element("div", { class: "scroll tall", tabindex: "0", role: "region", "aria-label": "The smallest change" }, table(heads, rows)),
    button,
  ];
}

// -- all of it --------------------------------------------------------------------------------------------------------

function buildHead() {
  by("legend").append(...answers.legend());
  if (facts.measured) {
    by("measured").hidden = false;
    by("measured").querySelector("p").textContent = `${cap(facts.measured.summary)}.`;
    by("measured").querySelector("pre").textContent = facts.measured.details;
  }
  if (!facts.certificate) return;
  by("proof").textContent = `Proved: ${facts.certificate.proved}.`;
  by("certificate").hidden = false;
  by("certificate").querySelector("pre").textContent = facts.certificate.words;
}

/** Shows or hides what only a person who checks the tree needs. */
function setDetails(shown) {
  by("details").checked = shown;
  document.body.classList.toggle("detailed", shown);
  state.width = null;
  redrawBranches();
}

buildHead();
buildTree();
buildForm();
choose(facts.outline.root, false);
update();
redrawBranches();
by("details").addEventListener("change", () => setDetails(by("details").checked));
new ResizeObserver(redrawBranches).observe(by("stage"));
addEventListener("beforeprint", () => layOutForPrint(true));
addEventListener("afterprint", () => layOutForPrint(false));

/* For scripts: the same arithmetic without the page. */
window.margotree = { facts, setDetails, route, singleFlips, nearestFlip, fill, parseNumber, readRow, readCells: valuesOf, ...answers.arithmetic };
