"use strict";

/* Elements, numbers and drawings.  Text goes in as text, never as markup. */

function element(tag, options = {}, ...children) {
  const made = document.createElement(tag);
  const { text, data, ...rest } = options;
  if (text !== undefined) made.textContent = text;
  for (const [name, value] of Object.entries(data || {})) made.dataset[name] = value;
  for (const [name, value] of Object.entries(rest)) made.setAttribute(name, value);
  made.append(...children.filter((child) => child !== null));
  return made;
}

function drawn(tag, attributes, text) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

/** A number to a few digits, with the minus sign of print. */
function short(x, digits = 4) {
  if (x === 0) return "0";
  const size = Math.abs(x);
  const words = size >= 1e9 || size < 1e-5 ? x.toExponential(digits - 1) : String(Number(x.toPrecision(digits)));
  return words.replaceAll("-", "\u2212");
}

function signed(x, digits = 3) {
  return (x > 0 ? "+" : "") + short(x, digits);
}

/** A number of the data, as it was entered. */
function exact(x) {
  return String(x).replaceAll("-", "\u2212");
}

function count(n) {
  return Math.abs(n - Math.round(n)) < 1e-9 * Math.max(1, n) ? String(Math.round(n)) : n.toFixed(2);
}

function total(v) {
  return facts.counts[v].reduce((sum, n) => sum + n, 0);
}

/** "455 samples: 285 benign, 170 malignant". */
function sampleWords(v) {
  const all = total(v);
  if (!all) return "no samples";
  const words = answers.countWords(facts.counts[v]);
  return `${count(all)} ${all === 1 ? "sample" : "samples"}${words ? `: ${words}` : ""}`;
}

function swatch(k) {
  return element("span", { class: `swatch class-${k}`, "aria-hidden": "true" });
}

/** The classes at a node side by side, as long as their shares; none in a tree of numbers. */
function shareBar(v) {
  if (facts.counts[v].length < 2) return null;
  const all = total(v);
  const bar = element("span", { class: "share", "aria-hidden": "true" });
  facts.counts[v].forEach((n, k) => {
    if (!n) return;
    const part = element("span", { class: `class-${k}` });
    part.style.width = `${(100 * n) / all}%`;
    bar.append(part);
  });
  return bar;
}

/** Samples over h: a row of bars per class, the margin as a band, the new sample as a mark. */
function histogram(t, h) {
  const data = facts.samples && facts.samples.histogram[t];
  if (!data) return null;
  const { edges, counts } = data;
  const shown = counts.map((row, k) => ({ row, k })).filter(({ row }) => row.some((n) => n));
  // As wide as there is room, so that its words stay as large as they are.
  const width = Math.min(640, Math.max(280, document.getElementById("node").clientWidth));
  const [rowHeight, foot, top] = [56, 34, 16];
  const height = top + shown.length * rowHeight + foot;
  const [low, high] = [edges[0], edges[edges.length - 1]];
  const x = (value) => ((value - low) / (high - low)) * width;
  const most = Math.max(...counts.flat());
  const svg = drawn("svg", { viewBox: `0 0 ${width} ${height}`, class: "histogram", role: "img" });
  svg.append(drawn("title", {}, histogramWords(t, shown)));
  const floor = height - foot;
  svg.append(drawn("rect", { x: x(-1), y: top, width: x(1) - x(-1), height: floor - top, class: "band" }));
  shown.forEach(({ row, k }, r) => {
    const base = top + (r + 1) * rowHeight;
    row.forEach((n, i) => {
      if (!n) return;
      const tall = Math.max(1.5, ((rowHeight - 8) * n) / most);
      const wide = Math.max(1, x(edges[i + 1]) - x(edges[i]) - 1);
      svg.append(drawn("rect", { x: x(edges[i]), y: base - tall, width: wide, height: tall, class: `bar class-${k}` }));
    });
    svg.append(drawn("line", { x1: 0, x2: width, y1: base, y2: base, class: "axis" }));
  });
  for (const at of [-1, 0, 1]) {
    svg.append(drawn("line", { x1: x(at), x2: x(at), y1: top, y2: floor, class: at ? "margin" : "plane" }));
  }
  scaleWords(svg, x, low, high, floor + 14);
  if (h !== null) sampleMark(svg, x, Math.min(Math.max(h, low), high), top, floor);
  return svg;
}

function scaleWords(svg, x, low, high, y) {
  const unit = x(1) - x(0);
  const ticks = [-1, 0, 1].filter((at) => at === 0 || unit > 22);
  const ends = [low, high].filter((end) => Math.abs(end) * unit > 60 && (Math.abs(end) - 1) * unit > 36);
  for (const at of [...ticks, ...ends]) {
    const anchor = at === low ? "start" : at === high ? "end" : "middle";
    svg.append(drawn("text", { x: x(at), y, "text-anchor": anchor }, short(at, 2)));
  }
  svg.append(drawn("text", { x: 0, y: y + 16 }, "\u2190 rule not met (h < 0)"));
  svg.append(drawn("text", { x: x(high), y: y + 16, "text-anchor": "end" }, "(h \u2265 0) rule met \u2192"));
}

function sampleMark(svg, x, h, top, floor) {
  svg.append(drawn("line", { x1: x(h), x2: x(h), y1: top, y2: floor, class: "mark" }));
  svg.append(drawn("path", { d: `M${x(h) - 6},${top - 12} h12 l-6,11 z`, class: "mark" }));
}

function histogramWords(t, shown) {
  const within = facts.samples.within[t];
  const rows = facts.counts[t].length > 1 ? `, one row per class: ${shown.map(({ k }) => answers.rowName(k)).join(", ")}` : "";
  return `Samples over h at node ${t}${rows}. `
    + `${within} lie within the margin.`;
}

/** Lines from each card to its children, as wide as their share of the samples; returns them by child.  Sized in em, so
    that they shrink with the cards in print.  Side by side they are curves, one below the other angles at the left. */
function drawBranches(stage, svg, cards) {
  const box = stage.getBoundingClientRect();
  const place = (card) => {
    const at = card.getBoundingClientRect();
    const left = at.left - box.left + stage.scrollLeft;
    const top = at.top - box.top + stage.scrollTop;
    return { left, right: left + at.width, middle: top + at.height / 2, bottom: top + at.height };
  };
  const vertical = stage.classList.contains("vertical");
  svg.replaceChildren();
  const [width, height] = [stage.scrollWidth, stage.scrollHeight];
  const em = parseFloat(getComputedStyle(stage).fontSize);
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.style.width = `${width / em}em`;
  svg.style.height = `${height / em}em`;
  const curves = new Map();
  for (const [t, children] of Object.entries(facts.outline.children)) {
    for (const child of children) {
      const [from, to] = [place(cards.get(Number(t))), place(cards.get(child))];
      const share = total(t) ? total(child) / total(t) : 0.5;
      const d = vertical ? angle(from, to) : bow(from, to);
      const curve = drawn("path", { d, class: "branch", "stroke-width": 1.5 + 5 * share });
      curves.set(child, curve);
      svg.append(curve);
    }
  }
  return curves;
}

function bow(from, to) {
  const bend = (to.left - from.right) / 2;
  const rise = to.middle - from.middle;
  return `M${from.right},${from.middle} c${bend},0 ${bend},${rise} ${2 * bend},${rise}`;
}

function angle(from, to) {
  return `M${(from.left + to.left) / 2},${from.bottom} V${to.middle} H${to.left}`;
}
