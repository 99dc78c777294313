"use strict";
// The picture: what is to be drawn (visible), where (layout, the steps of layout.py), and the drawing of what is in view.
// Then what can be done with it: to move, select, search, fold, and to step through the life of the graph.

const data = JSON.parse(document.getElementById("data").textContent);
const {nodes, groups, home, steps} = data;
const byId = (id) => document.getElementById(id);
const picture = byId("picture"), world = byId("world"), slider = byId("slider");
const forwardSteps = nodes.reduce((most, node) => Math.max(most, node.made), 0);
const madeAt = [];
nodes.forEach((node, n) => { if (node.made) madeAt[node.made] = n; });
const turnOf = new Map(steps.map((step, i) => [step.number, i]));
const consumers = nodes.map(() => []);
nodes.forEach((node, n) => node.edges.forEach(([target, argument], i) => consumers[target].push([n, argument, i])));

const opened = new Set(data.opened);
const view = {x: 0, y: 0, k: 1};
let drawn = null; // items, their sizes, places and kinds, and the edges between them, as they are folded now
let selected = 0; // a node's number, or -1 - a group's
let matches = new Set();

// -- what there is to draw --------------------------------------------------------------------------------------------

function shownAs(n) { // a node's number, or -1 - the outermost folded group around it
  let found = n;
  for (let g = home[n]; g >= 0; g = groups[g].parent) if (!opened.has(g)) found = -1 - g;
  return found;
}

function rank(id) { // a box comes before those that it sends gradients to
  if (id < 0) return groups[-1 - id].rank;
  return nodes[id].made ? nodes.length - nodes[id].made : id === 0 ? -1 : nodes.length + id;
}

function visible() {
  const as = nodes.map((_, n) => shownAs(n));
  const items = [...new Set(as)].sort((a, b) => rank(a) - rank(b));
  const place = new Map(items.map((id, i) => [id, i]));
  const edges = new Map();
  nodes.forEach((node, n) => node.edges.forEach(([target]) => {
    const a = place.get(as[n]), b = place.get(as[target]);
    if (a !== b) edges.set(a * items.length + b, (edges.get(a * items.length + b) || 0) + 1);
  }));
  const pairs = [...edges.keys()].map((key) => [Math.floor(key / items.length), key % items.length]);
  return {items, place, pairs, many: [...edges.values()]};
}

const LINE = 16, PADDING = 10, CHARACTER = 7.3;
const linesOf = (id) => (id < 0 ? groups[-1 - id].lines : nodes[id].lines);
function sizeOf(lines) {
  return [Math.max(...lines.map((line) => [...line].length)) * CHARACTER + 2 * PADDING, lines.length * LINE + PADDING];
}

// -- where it stands --------------------------------------------------------------------------------------------------

const GAP_X = 24, GAP_Y = 34, SWEEPS = 6, MOVES = 8, STRAIGHT = 8;

function layout(sizes, edges) {
  const boxes = sizes.length, widths = sizes.map((size) => size[0]), rowOf = new Array(boxes).fill(0);
  for (const [a, b] of [...edges].sort((e, f) => e[0] - f[0] || e[1] - f[1])) rowOf[b] = Math.max(rowOf[b], rowOf[a] + 1);
  let budget = 1000 + 4 * boxes;
  const paths = edges.map(([a, b]) => [a, b]);
  const spans = edges.map(([a, b], i) => [rowOf[b] - rowOf[a], i]).sort((e, f) => e[0] - f[0] || e[1] - f[1]);
  for (const [span, i] of spans) {
    budget -= span - 1;
    if (budget < 0) break;
    const [a, b] = edges[i], path = [a];
    for (let row = rowOf[a] + 1; row < rowOf[b]; row++) { path.push(rowOf.length); rowOf.push(row); widths.push(4); }
    path.push(b);
    paths[i] = path;
  }
  const above = widths.map(() => []), below = widths.map(() => []);
  for (const path of paths) for (let i = 1; i < path.length; i++) {
    const a = path[i - 1], b = path[i];
    if (rowOf[b] - rowOf[a] === 1) { below[a].push(b); above[b].push(a); }
  }
  const rows = ordered(rowOf, above, below), x = moved(rows, widths, above, below, boxes);
  const middles = [];
  let top = 0;
  for (const row of rows) {
    const tall = row.reduce((most, i) => (i < boxes ? Math.max(most, sizes[i][1]) : most), 0);
    middles.push(top + tall / 2);
    top += tall + GAP_Y;
  }
  let left = Infinity, right = -Infinity;
  widths.forEach((w, i) => { left = Math.min(left, x[i] - w / 2); right = Math.max(right, x[i] + w / 2); });
  const at = widths.map((_, i) => [x[i] - left, middles[rowOf[i]]]);
  return {places: at.slice(0, boxes), bends: paths.map((path) => path.map((i) => at[i])), width: right - left, height: top - GAP_Y};
}

function ordered(rowOf, above, below) {
  const rows = [], seen = new Array(rowOf.length).fill(false), place = new Array(rowOf.length).fill(0);
  for (let row = rowOf.reduce((most, r) => Math.max(most, r), 0); row >= 0; row--) rows.push([]);
  for (let start = 0; start < rowOf.length; start++) {
    const stack = [start];
    while (stack.length) {
      const i = stack.pop();
      if (seen[i]) continue;
      seen[i] = true;
      rows[rowOf[i]].push(i);
      for (let k = below[i].length - 1; k >= 0; k--) stack.push(below[i][k]);
    }
  }
  const number = (row) => row.forEach((i, k) => { place[i] = k; });
  rows.forEach(number);
  const key = new Array(rowOf.length).fill(0);
  for (let sweep = 0; sweep < SWEEPS; sweep++) {
    const downwards = sweep % 2 === 0, neighbours = downwards ? above : below;
    for (let r = 0; r < rows.length; r++) {
      const row = rows[downwards ? r : rows.length - 1 - r];
      for (const i of row) {
        key[i] = neighbours[i].length ? neighbours[i].reduce((total, j) => total + place[j], 0) / neighbours[i].length : place[i];
      }
      row.sort((a, b) => key[a] - key[b]);
      number(row);
    }
  }
  return rows;
}

function moved(rows, widths, above, below, boxes) {
  const x = new Array(widths.length).fill(0), mass = new Array(widths.length).fill(1);
  for (let r = rows.length - 1; r >= 0; r--) for (const i of rows[r]) for (const j of below[i]) mass[i] = Math.max(mass[i], mass[j] + 1);
  const apart = rows.map((row) => {
    let total = 0;
    const offsets = row.map((i, k) => { if (k) total += (widths[row[k - 1]] + widths[i]) / 2 + GAP_X; return total; });
    row.forEach((i, k) => { x[i] = offsets[k] - total / 2; });
    return offsets;
  });
  for (let move = 0; move < MOVES; move++) {
    const downwards = move % 2 === 0, last = move >= MOVES - 2;
    for (let n = 0; n < rows.length; n++) {
      const r = downwards ? n : rows.length - 1 - n;
      const wanted = rows[r].map((i) => {
        let pull = 0, total = 0;
        const towards = (j) => {
          const weight = Math.min(mass[i], mass[j]) * (i >= boxes && j >= boxes ? STRAIGHT : 1);
          pull += weight;
          total += weight * x[j];
        };
        if (last || downwards) above[i].forEach(towards);
        if (last || !downwards) below[i].forEach(towards);
        return pull ? total / pull : x[i];
      });
      pooled(wanted, apart[r], rows[r].map((i) => mass[i])).forEach((found, k) => { x[rows[r][k]] = found; });
    }
  }
  return x;
}

function pooled(wanted, offsets, masses) {
  const pools = [];
  wanted.forEach((value, k) => {
    let mean = value - offsets[k], total = masses[k], count = 1;
    while (pools.length && pools[pools.length - 1][0] >= mean) {
      const [other, more, many] = pools.pop();
      mean = (mean * total + other * more) / (total + more);
      total += more;
      count += many;
    }
    pools.push([mean, total, count]);
  });
  const means = pools.flatMap(([mean, , count]) => new Array(count).fill(mean));
  return means.map((mean, k) => mean + offsets[k]);
}

// -- drawing ----------------------------------------------------------------------------------------------------------

function make(tag, attributes, ...children) {
  const svg = ["g", "rect", "path", "text", "title"].includes(tag);
  const element = svg ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) element.setAttribute(name, value);
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

const CLASS = {loss: "loss", leaf: "leaf", function: "function", operation: "box"};
const kindOf = (id) => (id < 0 ? "group" : CLASS[nodes[id].kind]);
const MANY = 900, SMALLEST = 0.3; // more boxes than this in view, or smaller ones, are drawn as one shape
const shapes = new Map(), lines = new Map(); // what is on the page now, by place

function refold() {
  const found = visible(), sizes = found.items.map((id) => sizeOf(linesOf(id)));
  drawn = {...found, sizes, kinds: found.items.map(kindOf), ...layout(sizes, found.pairs)};
  drawn.paths = drawn.bends.map((bends, e) => {
    const [a, b] = drawn.pairs[e];
    const points = bends.map(([x, y]) => [x, y]);
    points[0][1] += sizes[a][1] / 2;
    points[points.length - 1][1] -= sizes[b][1] / 2;
    let path = `M${points[0].join(" ")}`, left = points[0][0], right = left;
    for (let i = 1; i < points.length; i++) {
      const [x0, y0] = points[i - 1], [x1, y1] = points[i], half = (y0 + y1) / 2;
      path += `C${x0.toFixed(1)} ${half.toFixed(1)} ${x1.toFixed(1)} ${half.toFixed(1)} ${x1.toFixed(1)} ${y1.toFixed(1)}`;
      left = Math.min(left, x1);
      right = Math.max(right, x1);
    }
    const end = points[points.length - 1], before = points[points.length - 2];
    return {path, left, right, top: points[0][1], bottom: end[1], label: [(end[0] + before[0]) / 2 + 5, (end[1] + before[1]) / 2 + 4],
      far: points.length === 2 && end[1] - points[0][1] > 400};
  });
  shapes.clear();
  lines.clear();
  byId("boxes").replaceChildren();
  byId("lines").replaceChildren();
  drawFar();
  draw();
}

function drawFar() { // all of it in a few shapes, for when the boxes are too many or too small to be read
  const rects = {};
  drawn.items.forEach((_, i) => {
    const [x, y] = drawn.places[i], [w, h] = drawn.sizes[i];
    (rects[drawn.kinds[i]] ||= []).push(`M${Math.round(x - w / 2)} ${Math.round(y - h / 2)}h${Math.round(w)}v${h}h${-Math.round(w)}z`);
  });
  const edges = drawn.bends.filter((_, e) => !drawn.paths[e].far).map((bends) => "M" + bends.map(([x, y]) => `${Math.round(x)} ${Math.round(y)}`).join("L"));
  byId("far").replaceChildren(make("path", {class: "pb-line", d: edges.join("")}),
    ...Object.entries(rects).map(([kind, parts]) => make("path", {class: `pb-${kind}`, d: parts.join("")})));
}

let waiting = false;
function draw() { // at most once for each frame
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => { waiting = false; drawNow(); });
}

function drawNow() {
  world.setAttribute("transform", `translate(${view.x} ${view.y}) scale(${view.k})`);
  const {width, height} = picture.getBoundingClientRect();
  const left = -view.x / view.k - 40, top = -view.y / view.k - 40;
  const right = left + width / view.k + 80, bottom = top + height / view.k + 80;
  const inView = [];
  if (view.k >= SMALLEST) {
    for (let i = 0; i < drawn.items.length && inView.length <= MANY; i++) {
      const [x, y] = drawn.places[i], [w, h] = drawn.sizes[i];
      if (x + w / 2 >= left && x - w / 2 <= right && y + h / 2 >= top && y - h / 2 <= bottom) inView.push(i);
    }
  }
  const near = view.k >= SMALLEST && inView.length <= MANY;
  byId("far").style.display = near ? "none" : "";
  keep(shapes, byId("boxes"), near ? inView : [], box);
  const edges = [];
  if (near) drawn.paths.forEach((path, e) => {
    if (path.right >= left && path.left <= right && path.bottom >= top && path.top <= bottom) edges.push(e);
  });
  keep(lines, byId("lines"), edges, line);
  for (const [i, element] of shapes) element.setAttribute("class", `box ${stateOf(drawn.items[i])}`);
  const running = position() > forwardSteps ? current() : null;
  for (const [e, element] of lines) {
    const [a, b] = drawn.pairs[e];
    element.firstChild.setAttribute("class", "pb-line" + (drawn.paths[e].far ? " pb-far" : "") +
      (running !== null && drawn.items[a] === shownAs(running) ? " now" : "") +
      (stateOf(drawn.items[a]).includes("not-made") ? " not-made" : ""));
  }
  marks(near);
}

function keep(map, parent, wanted, create) { // the elements of `wanted` are on the page, and no others
  const set = new Set(wanted);
  for (const [i, element] of map) if (!set.has(i)) { element.remove(); map.delete(i); }
  for (const i of wanted) if (!map.has(i)) { const element = create(i); map.set(i, element); parent.append(element); }
}

function box(i) {
  const id = drawn.items[i], kind = drawn.kinds[i], text = linesOf(id);
  const [x, y] = drawn.places[i], [w, h] = drawn.sizes[i];
  const frame = {width: w, height: h, rx: kind === "leaf" || kind === "loss" ? Math.min(h / 2, 20) : 5};
  const element = make("g", {id: `box-${i}`, role: "button", "aria-label": text.join(", "), "data-id": id});
  if (id < 0) element.append(make("rect", {class: "pb-group", x: x - w / 2 + 5, y: y - h / 2 + 5, ...frame}));
  element.append(make("rect", {class: `frame pb-${kind}`, x: x - w / 2, y: y - h / 2, ...frame}));
  text.forEach((words, k) => element.append(make("text", {
    class: (k ? "" : "pb-title") + (kind === "loss" ? " pb-on-loss" : ""),
    x, y: y - h / 2 + PADDING / 2 + LINE * (k + 0.75), "text-anchor": "middle"}, words)));
  return element;
}

function line(e) {
  const {path, label} = drawn.paths[e];
  const element = make("g", {}, make("path", {d: path, "marker-end": "url(#pb-arrow)"}));
  if (drawn.many[e] > 1) element.append(make("text", {class: "pb-many", x: label[0], y: label[1]}, `x ${drawn.many[e]}`));
  return element;
}

function marks(near) { // where boxes are not drawn one by one, a frame shows which one is meant
  for (const old of world.querySelectorAll(".mark")) old.remove();
  if (near) return;
  const now = current();
  for (const [id, name] of [[selected, "mark selected"], [now === null ? null : shownAs(now), "mark"]]) {
    const i = id === null ? undefined : drawn.place.get(id < 0 ? id : shownAs(id));
    if (i === undefined) continue;
    const [x, y] = drawn.places[i], [w, h] = drawn.sizes[i], room = 6 / view.k;
    world.append(make("rect", {class: name, x: x - w / 2 - room, y: y - h / 2 - room, width: w + 2 * room, height: h + 2 * room}));
  }
}

// -- the life of the graph --------------------------------------------------------------------------------------------

const position = () => Number(slider.value);

function current() { // the node whose turn it is, or null
  const p = position();
  return p > forwardSteps ? steps[p - forwardSteps - 1].number : madeAt[p] ?? null;
}

function turn(n) { // which turn a node has in the backward pass, and whether it is to come (1), there (0) or over (-1)
  const i = turnOf.get(n);
  return i === undefined ? null : {i, when: Math.sign(i - (position() - forwardSteps - 1))};
}

function stateOf(id) {
  const now = current(), state = [];
  if (selected === id) state.push("selected");
  if (now !== null && shownAs(now) === id) state.push("now");
  if (id < 0) {
    const g = groups[-1 - id];
    if (g.period && position() <= g.start) state.push("not-made");
    if (matches.size && [...matches].some((n) => shownAs(n) === id)) state.push("found");
  } else {
    if (nodes[id].made > position() || (id === 0 && position() < forwardSteps)) state.push("not-made");
    const its = turn(id);
    if (its && its.when < 0) state.push("ran");
    if (its && its.when <= 0 && steps[its.i].freed) state.push("freed");
    if (matches.has(id)) state.push("found");
  }
  return state.join(" ");
}

function status() {
  const p = position();
  if (p === 0) return "Before the first operation: there are only leaves.";
  if (p <= forwardSteps) {
    const more = p < forwardSteps ? "" : steps.length ? " The graph is complete: next, backward." : " The graph is complete. graph(loss, backward=True) shows the backward pass too.";
    return `forward ${p} of ${forwardSteps}: ${nodes[madeAt[p]].name} is made.${more}`;
  }
  const step = steps[p - forwardSteps - 1], node = nodes[step.number];
  const what = node.kind === "leaf" ? `the gradient is added to ${node.variable || "the leaf"}.grad`
    : `${node.name} runs` + (step.freed ? " and lets go of what it saved" : "");
  return `backward ${p - forwardSteps} of ${steps.length}: ${what}.`;
}

function stepTo(p) {
  slider.value = p;
  byId("status").textContent = status();
  const now = current();
  if (now !== null) select(shownAs(now) < 0 ? now : shownAs(now), true);
  else { details(); draw(); }
}

let timer = null;
function play() {
  if (timer !== null) { clearInterval(timer); timer = null; byId("play").textContent = "Play"; return; }
  if (position() >= Number(slider.max)) stepTo(0);
  byId("play").textContent = "Pause";
  timer = setInterval(() => { if (position() >= Number(slider.max)) play(); else stepTo(position() + 1); }, 700);
}

// -- what is known of a node ------------------------------------------------------------------------------------------

function valuesOf(values) {
  if (!values) return [make("p", {class: "quiet"}, "none")];
  const found = [make("p", {}, `${values.type}, norm ${values.norm}`)];
  if (values.elements && values.elements.length) {
    const table = make("table", {});
    for (let i = 0; i < values.elements.length; i += values.row) {
      table.append(make("tr", {}, ...values.elements.slice(i, i + values.row).map((v) => make("td", {}, v))));
    }
    found.push(make("div", {class: "values", tabindex: "0"}, table));
  }
  return found;
}

function stage(name, when, note, ...content) {
  return make("li", {class: when, "data-stage": name}, make("h3", {}, name, note ? make("small", {}, ` ${note}`) : null), ...content);
}

function jump(n, words) {
  const button = make("button", {type: "button"}, words);
  button.addEventListener("click", () => select(n, true, true));
  return button;
}

function details() {
  const panel = byId("details");
  panel.replaceChildren();
  if (selected < 0) { groupDetails(panel, -1 - selected); return; }
  const node = nodes[selected];
  panel.append(make("h2", {}, node.lines[0]), make("p", {class: "quiet"}, (node.lines[0] === node.name ? "" : `${node.name}: `) + node.outputs));
  if (node.kind === "operation" || node.kind === "function") panel.append(life(node));
  else {
    if (node.value) panel.append(make("h3", {}, "Value"), ...valuesOf(node.value));
    const its = turn(selected);
    if (its) {
      panel.append(make("h3", {}, "Incoming gradient"), ...(its.when <= 0 ? steps[its.i].received.flatMap(valuesOf)
        : [make("p", {class: "quiet"}, `arrives in step ${its.i + 1} of ${steps.length}`)]));
    }
    if (node.grad && !(its && its.when > 0)) panel.append(make("h3", {}, ".grad"), ...valuesOf(node.grad));
  }
  neighbours(panel, node);
  const g = home[selected];
  if (g >= 0 && shownAs(selected) >= 0) {
    const row = make("p", {});
    for (let around = g; around >= 0; around = groups[around].parent) {
      const fold = make("button", {type: "button", class: "fold-around"}, `Fold ${nameOf(around)}`);
      fold.addEventListener("click", () => toggle(-1 - around));
      row.append(fold, " ");
    }
    panel.append(make("h3", {}, "One of a repeat"), row);
  }
}

function nameOf(g) {
  const group = groups[g];
  return group.block ? `block ${group.block} of ${groups[group.parent].count}` : `x ${group.count}`;
}

function groupDetails(panel, g) {
  const {period} = groups[g], what = period === 0 ? "Leaves" : period === 1 ? "One operation" : `A block of ${period} operations`;
  panel.append(make("h2", {}, `${what}, ${nameOf(g)}`));
  panel.append(make("p", {class: "quiet"}, groups[g].lines.slice(1).join(", ")));
  const open = make("button", {type: "button", id: "unfold"}, "Unfold");
  open.addEventListener("click", () => toggle(-1 - g));
  panel.append(make("p", {}, open));
}

function life(node) { // apply -> ctx -> forward -> grad_fn -> backward -> freed
  const [call, words, formula, source] = data.rules[node.rule];
  const made = node.made < position() ? "done" : node.made === position() ? "now" : "";
  const its = turn(selected), ran = its && its.when <= 0;
  const step = its ? steps[its.i] : null;
  const place = node.origin ? [make("p", {}, `${node.origin[0]}, in ${node.origin[1]}`), make("pre", {class: "line"}, node.origin[2] || "")]
    : [make("p", {class: "quiet"}, "The line of your code was not noted: build the graph within `with pullback.autograd.record_origins():`.")];
  const attributes = Object.entries(node.attributes || {}).map(([name, value]) => make("p", {}, `ctx.${name} = ${value}`));
  const saved = (node.saved || []).map((s) => make("div", {class: "saved"},
    make("p", {}, make("b", {}, s.name), `: ${s.bytes}, ${s.owner}`), ...valuesOf(s.values)));
  const stages = [
    stage("apply", made, `${call}(...) is called`, ...place),
    stage("ctx", made, `node ${node.made} of ${forwardSteps}`, ...attributes, ...(saved.length ? saved
      : [make("p", {class: "quiet"}, node.state === "nothing" ? "saves no tensor" : `saved tensors: ${node.state}`)])),
    stage("forward", made, node.outputs || "", words ? make("p", {}, words) : null,
      formula ? make("pre", {class: "formula"}, formula) : null, source ? make("p", {class: "quiet"}, source) : null),
    stage("grad_fn", made, `${node.variable || "the result"}.grad_fn is this node`, ...(node.grad ? [make("p", {}, "retained .grad:"), ...valuesOf(node.grad)] : [])),
  ];
  if (!step) {
    const why = steps.length ? "this node had no turn" : "no backward pass was run";
    return make("ol", {class: "stages"}, ...stages, stage("backward", "", why), stage("freed", node.state === "freed" ? "done" : "", node.state === "freed" ? "by an earlier backward" : ""));
  }
  const content = ran ? [make("h3", {}, "Incoming gradient"), ...step.received.flatMap(valuesOf),
    ...step.sent.flatMap((v, i) => [make("h3", {}, `Outgoing gradient of ${node.arguments[i]}`), ...valuesOf(v)])] : [];
  stages.push(stage("backward", its.when === 0 ? "now" : ran ? "done" : "", `step ${its.i + 1} of ${steps.length}`, ...content));
  const freed = !ran ? "" : step.freed ? "what was saved is let go" : node.saved ? "kept: retain_graph=True" : "nothing was saved";
  stages.push(stage("freed", ran && step.freed ? "done" : "", freed));
  return make("ol", {class: "stages"}, ...stages);
}

function neighbours(panel, node) {
  const list = (title, ways, words) => {
    if (!ways.length) return;
    const row = make("p", {});
    ways.slice(0, 24).forEach((way) => row.append(jump(way[0], words(way)), " "));
    if (ways.length > 24) row.append(`and ${ways.length - 24} more`);
    panel.append(make("h3", {}, title), row);
  };
  list("Gradients come from", consumers[selected], ([n]) => nodes[n].lines[0]);
  list("Gradients go to", node.edges, ([n, argument]) => (argument ? `${argument}: ` : "") + nodes[n].lines[0]);
}

// -- what can be done -------------------------------------------------------------------------------------------------

function select(id, show, unfold = false) { // show: bring it into view; unfold: also if it is in a folded group
  selected = id;
  if (unfold && shownAs(id) < 0) reveal(id);
  const i = drawn.place.get(id < 0 ? id : shownAs(id));
  if (show && i !== undefined) bringIntoView(i);
  picture.setAttribute("aria-activedescendant", `box-${i}`);
  details();
  draw();
}

function reveal(n) { // unfold what a node is hidden in
  for (let g = home[n]; g >= 0; g = groups[g].parent) opened.add(g);
  refold();
}

function toggle(id) {
  const g = -1 - id, before = drawn.place.has(id) ? drawn.places[drawn.place.get(id)] : null;
  if (opened.has(g)) { opened.delete(g); selected = id; }
  else {
    opened.add(g);
    selected = shownAs(groups[g].first);
  }
  refold();
  const i = drawn.place.get(selected < 0 ? selected : shownAs(selected));
  if (before && i !== undefined) { // what was clicked stays where it was
    view.x += (before[0] - drawn.places[i][0]) * view.k;
    view.y += (before[1] - drawn.places[i][1]) * view.k;
  }
  select(selected < 0 ? selected : shownAs(selected), true);
}

function foldAll(all) {
  opened.clear();
  if (!all) groups.forEach((_, g) => opened.add(g));
  refold();
  if (selected >= 0) selected = shownAs(selected);
  else if (!drawn.place.has(selected)) selected = 0;
  home0();
  select(selected, false);
}

function bringIntoView(i) {
  const {width, height} = picture.getBoundingClientRect(), [x, y] = drawn.places[i];
  const sx = view.x + x * view.k, sy = view.y + y * view.k, room = Math.min(90, width / 4, height / 4);
  if (sx < room || sx > width - room) view.x = width / 2 - x * view.k;
  if (sy < room || sy > height - room) view.y = height / 2 - y * view.k;
}

function zoom(factor, cx, cy) {
  const {width, height} = picture.getBoundingClientRect();
  cx ??= width / 2;
  cy ??= height / 2;
  const k = Math.min(4, Math.max(Math.min(0.02, smallest()), view.k * factor));
  view.x = cx - (cx - view.x) * k / view.k;
  view.y = cy - (cy - view.y) * k / view.k;
  view.k = k;
  draw();
}

function smallest() {
  const {width, height} = picture.getBoundingClientRect();
  return Math.min((width - 30) / drawn.width, (height - 30) / drawn.height, 1.2);
}

function fit() {
  const {width, height} = picture.getBoundingClientRect();
  view.k = smallest();
  view.x = (width - drawn.width * view.k) / 2;
  view.y = (height - drawn.height * view.k) / 2;
  draw();
}

function home0() { // all of it if it can be read so, else the loss at the top
  fit();
  if (view.k >= 0.65) return;
  const {width} = picture.getBoundingClientRect(), i = drawn.place.get(shownAs(0));
  view.k = 0.8;
  view.x = width / 2 - drawn.places[i][0] * view.k;
  view.y = 20;
  draw();
}

function boxAt(event) {
  const frame = picture.getBoundingClientRect();
  const x = (event.clientX - frame.left - view.x) / view.k, y = (event.clientY - frame.top - view.y) / view.k;
  const i = drawn.items.findIndex((_, n) => Math.abs(x - drawn.places[n][0]) <= drawn.sizes[n][0] / 2 && Math.abs(y - drawn.places[n][1]) <= drawn.sizes[n][1] / 2);
  return i < 0 ? null : drawn.items[i];
}

const pointers = new Map();
let travelled = 0;
picture.addEventListener("pointerdown", (event) => {
  if (event.button) return;
  pointers.set(event.pointerId, event);
  travelled = 0;
  picture.setPointerCapture(event.pointerId);
});
picture.addEventListener("pointermove", (event) => {
  const before = pointers.get(event.pointerId);
  if (!before) return;
  const dx = event.clientX - before.clientX, dy = event.clientY - before.clientY;
  travelled += Math.abs(dx) + Math.abs(dy);
  if (pointers.size === 2) { // two fingers: what is between them grows as they part
    const [other] = [...pointers].filter(([id]) => id !== event.pointerId).map(([, e]) => e);
    const was = Math.hypot(before.clientX - other.clientX, before.clientY - other.clientY);
    const is = Math.hypot(event.clientX - other.clientX, event.clientY - other.clientY);
    const frame = picture.getBoundingClientRect();
    if (was > 0) zoom(is / was, (event.clientX + other.clientX) / 2 - frame.left, (event.clientY + other.clientY) / 2 - frame.top);
  } else { view.x += dx; view.y += dy; }
  pointers.set(event.pointerId, event);
  picture.classList.add("dragged");
  draw();
});
function pointerEnds(event) {
  const known = pointers.delete(event.pointerId);
  picture.classList.remove("dragged");
  if (!known || event.type !== "pointerup" || travelled > 4) return;
  const id = boxAt(event);
  if (id !== null) select(id, false);
}
picture.addEventListener("pointerup", pointerEnds);
picture.addEventListener("pointercancel", pointerEnds);
picture.addEventListener("dblclick", (event) => { const id = boxAt(event); if (id !== null && id < 0) toggle(id); });
picture.addEventListener("wheel", (event) => {
  event.preventDefault();
  const frame = picture.getBoundingClientRect();
  zoom(Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.0015)), event.clientX - frame.left, event.clientY - frame.top);
}, {passive: false});

function along(down) { // the next box along the edges
  const i = drawn.place.get(selected < 0 ? selected : shownAs(selected));
  const ways = drawn.pairs.filter(([a, b]) => (down ? a : b) === i).map(([a, b]) => (down ? b : a));
  if (ways.length) select(drawn.items[ways[0]], true);
}

function beside(way) { // the next box in the same row
  const i = drawn.place.get(selected < 0 ? selected : shownAs(selected)), [x, y] = drawn.places[i];
  let best = -1;
  drawn.places.forEach(([px, py], n) => {
    if (py === y && (px - x) * way > 0 && (best < 0 || Math.abs(px - x) < Math.abs(drawn.places[best][0] - x))) best = n;
  });
  if (best >= 0) select(drawn.items[best], true);
}

const KEYS = {
  ArrowDown: () => along(true), ArrowUp: () => along(false), ArrowLeft: () => beside(-1), ArrowRight: () => beside(1),
  "+": () => zoom(1.25), "=": () => zoom(1.25), "-": () => zoom(0.8), 0: fit, Home: home0,
  Enter: () => { if (selected < 0) toggle(selected); else if (home[selected] >= 0) toggle(-1 - home[selected]); },
};
picture.addEventListener("keydown", (event) => {
  const action = event.ctrlKey || event.metaKey || event.altKey ? null : KEYS[event.key];
  if (action) { event.preventDefault(); action(); }
});
document.addEventListener("keydown", (event) => {
  if (event.key === "/" && event.target.tagName !== "INPUT") { event.preventDefault(); byId("search").focus(); }
});

const titles = nodes.map((node) => `${node.name} ${node.variable || ""}`.toLowerCase());
const searched = nodes.map((node) => node.lines.join(" ").toLowerCase());
function search() {
  const wanted = byId("search").value.trim().toLowerCase(), list = byId("found");
  const named = titles.map((text) => text.includes(wanted)); // these come first, then what has it elsewhere in its box
  const all = [...nodes.keys()].filter((n) => wanted && (named[n] || searched[n].includes(wanted)));
  const found = [...all.filter((n) => named[n]), ...all.filter((n) => !named[n])];
  matches = new Set(found.slice(0, 2000));
  list.replaceChildren(...found.slice(0, 40).map((n) => {
    const button = jump(n, nodes[n].lines.slice(0, 2).join("  ") + (nodes[n].made ? `  #${nodes[n].made}` : ""));
    return make("li", {}, button);
  }));
  if (wanted) list.append(make("li", {class: "count"}, `${found.length} found`));
  list.hidden = !wanted;
  draw();
}
byId("search").addEventListener("input", search);
byId("search").addEventListener("keydown", (event) => {
  if (event.key === "Escape") { event.target.value = ""; search(); }
  if (event.key === "Enter") byId("found").querySelector("button")?.click();
  if (event.key === "ArrowDown") { event.preventDefault(); byId("found").querySelector("button")?.focus(); }
});
byId("found").addEventListener("keydown", (event) => {
  const row = event.target.closest("li");
  const next = event.key === "ArrowDown" ? row?.nextElementSibling : event.key === "ArrowUp" ? row?.previousElementSibling : null;
  if (event.key === "Escape") { byId("search").value = ""; search(); byId("search").focus(); }
  if (next) { event.preventDefault(); next.querySelector("button")?.focus(); }
});
byId("fold-all").addEventListener("click", () => foldAll(true));
byId("unfold-all").addEventListener("click", () => foldAll(false));
byId("zoom-in").addEventListener("click", () => zoom(1.25));
byId("zoom-out").addEventListener("click", () => zoom(0.8));
byId("fit").addEventListener("click", fit);
byId("back").addEventListener("click", () => stepTo(Math.max(0, position() - 1)));
byId("next").addEventListener("click", () => stepTo(Math.min(Number(slider.max), position() + 1)));
byId("play").addEventListener("click", play);
slider.addEventListener("input", () => stepTo(position()));
window.addEventListener("resize", draw);

const leaves = nodes.filter((node) => node.kind === "leaf").length;
byId("summary").textContent = `${leaves} ${leaves === 1 ? "leaf" : "leaves"}, ${data.saved} saved` + (steps.length ? `, ${steps.length} steps of backward` : "");
slider.max = forwardSteps + steps.length;
slider.value = forwardSteps;
byId("status").textContent = status();
for (const id of ["fold-all", "unfold-all"]) byId(id).hidden = !groups.length;
refold();
home0();
select(shownAs(0), false);
