// Two graphs side by side, or one with two tensors for each layer: what is selected, seen or folded in one is so in the other.
//
// Keys of the document: states [name, title, colours], first the row to begin with, rows of pairs: a and b their layers,
// s state, q SNR in decibels (null: equal), d 1 where they differ, f [name, text], v tensors. Keys of tensors: labels, low and high of the histogram, counts [A, B], stats
// [[name, A, B]], values [[position, A, B, interval]], image {w, h, planes [A, B, difference], title}.

const RATIOS = [
  ["below 20 dB", "#f6b8ae", "#b3261e", "#6b2219", "#ff8a80"], ["20 to 40 dB", "#fbd9a8", "#a85b00", "#573a10", "#f0b35e"],
  ["40 to 60 dB", "#f7f0b0", "#7d7000", "#454012", "#d8cc4a"], ["60 to 100 dB", "#cdeac8", "#3b7d35", "#23421f", "#8fd387"],
  ["above 100 dB or equal", "#b9dcee", "#1f6a94", "#173e54", "#7cc4ec"], ["not compared", "#f2f4f6", "#98a2ad", "#24292f", "#6b7683"]];
const SIDES = ["a", "b"], COLOURS = ["#3f86c9", "#dd7a2f"];

class Beside {
  constructor(root) {
    Object.assign(this, JSON.parse(root.querySelector(":scope > script[type='application/json']").textContent));
    this.root = root;
    this.pages = [...root.querySelectorAll("section.irexec-graph")].map((one) => one.irexecGraph);
    this.aside = root.querySelector(":scope > .details");
    this.busy = false;
    this.rowsOf = this.pages.map((_, side) => {
      const rows = new Map();
      this.rows.forEach((row, i) => {
        const layer = row[this.pages.length === 1 ? "b" : SIDES[side]];
        if (layer !== null) rows.set(layer, [...(rows.get(layer) || []), i]);
      });
      return rows;
    });
    this.differing = this.rows.flatMap((row, i) => (row.d ? [i] : []));
    this.at = this.first === null ? -1 : this.differing.indexOf(this.first);
    for (const page of this.pages) { page.linked = this; page.panel.element = make("div"); page.begin(); }
    root.addEventListener("keydown", (event) => this.key(event));
    root.querySelector(".head").addEventListener("click", (event) => this.button(event.target.closest("[data-go]")?.dataset.go));
    root.querySelector("select").addEventListener("change", (event) => this.colour(event.target.value));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.counts());
    this.counts();
    this.show(this.pages.length - 1);
    if (this.first !== null) this.open(this.first);
  }

  // The buttons with the numbers of layers in each state; a click lists them.
  counts() {
    const numbers = new Map();
    for (const row of this.rows) numbers.set(row.s, (numbers.get(row.s) || 0) + 1);
    const buttons = this.states.flatMap((state, i) => (numbers.has(i) ? [make("button", [this.swatch(i), `${numbers.get(i).toLocaleString("en")} ${state[0]}`],
      { type: "button", class: "count", onclick: () => this.list(i) })] : []));
    this.root.querySelector(".counts").replaceChildren(...buttons);
  }

  swatch(state) {
    return swatch(this.states[state].slice(1), matchMedia("(prefers-color-scheme: dark)").matches);
  }

  colour(how) {
    const worst = (side) => (layer) => {
      const ratios = (this.rowsOf[side].get(layer.index) || []).map((i) => this.rows[i].q).filter((ratio) => ratio !== undefined).map((ratio) => ratio ?? 1e9);
      return ratios.length ? [20, 40, 60, 100, Infinity].findIndex((limit) => Math.min(...ratios) < limit) : RATIOS.length - 1;
    };
    this.pages.forEach(({ graph }, side) => {
      if (how === "snr") graph.shade(RATIOS, worst(side));
      else graph.shade(graph.states, (layer) => layer.st ?? graph.states.length - 1);
    });
    for (const page of this.pages) { page.legend(); page.draw(); }
  }

  // On a narrow screen one graph is in sight.
  show(side) {
    this.root.dataset.shown = String(side);
    for (const button of this.root.querySelectorAll("[data-go^=show]")) button.setAttribute("aria-pressed", String(button.dataset.go === `show${side}`));
  }

  button(name) {
    if (name === "next" || name === "previous") this.step(name === "next" ? 1 : -1);
    else if (name === "first") this.open(this.first);
    else if (name?.startsWith("show")) { this.show(Number(name.slice(4))); this.pages[Number(name.slice(4))].resize(); }
  }

  key(event) {
    if (event.target.matches("input, select, dialog *") || event.altKey || event.ctrlKey || event.metaKey) return;
    if (event.key === "n") this.step(1); else if (event.key === "p") this.step(-1); else return;
    event.preventDefault();
  }

  step(by) {
    if (!this.differing.length) return;
    this.at = this.at < 0 && by < 0 ? this.differing.length - 1 : (this.at + by + this.differing.length) % this.differing.length;
    this.open(this.differing[this.at]);
  }

  // Shows the layers of a row, in B if it has one there.
  open(row) {
    const side = this.pages.length === 1 || this.rows[row].b === null ? 0 : 1;
    this.at = this.differing.includes(row) ? this.differing.indexOf(row) : this.at;
    if (getComputedStyle(this.pages[side].root).display === "none") this.show(side);
    this.wanted = row;
    this.pages[side].showLayer(this.pages.length === 1 || side === 1 ? this.rows[row].b : this.rows[row].a);
    this.wanted = null;
  }

  // The rows of a box: of its layer, or of constants that are drawn in it.
  rowsAt(side, item, layer) {
    const { graph } = this.pages[side], shown = layer === undefined ? graph.layerOf(item) : graph.layers[layer];
    if (!shown) return [];
    const own = this.rowsOf[side].get(shown.index) || [];
    const inside = layer === undefined ? shown.k.flatMap((i) => this.rowsOf[side].get(i) || []).filter((i) => this.rows[i].d) : [];
    return [...own, ...inside].sort((a, b) => (b === this.wanted) - (a === this.wanted));
  }

  selected(page, item, layer) {
    if (this.busy) return;
    const side = this.pages.indexOf(page), other = this.pages[1 - side];
    const rows = item === null ? [] : this.rowsAt(side, item, layer);
    const partner = other && rows.map((i) => this.rows[i][SIDES[1 - side]]).find((one) => one !== null);
    this.busy = true;
    if (other) {
      const target = partner === undefined ? null : other.graph.itemOf(partner);
      if (target !== null && other.graph.reveal(target)) { other.place(); this.anchors = null; }
      other.select(target, partner !== undefined && other.graph.layers[partner].h !== undefined ? partner : undefined);
    }
    this.busy = false;
    if (item === null) this.aside.hidden = true;
    else this.fill(rows);
    requestAnimationFrame(() => { for (const one of this.pages) one.resize(); if (item !== null) this.moved(page, item); });
  }

  // Folds or unfolds the block of the other graph with most partners of the layers of a block, if these are most of both.
  toggled(page, frame, folded) {
    const side = this.pages.indexOf(page), other = this.pages[1 - side];
    this.anchors = null;
    if (!other || this.busy) return;
    this.busy = true;
    if (frame === null) other.foldAll(folded);
    else {
      const partners = new Set(page.graph.inside(frame).flatMap((layer) => (this.rowsOf[side].get(layer.index) || []).map((i) => this.rows[i][SIDES[1 - side]])));
      const shared = (one) => other.graph.inside(one).filter((layer) => partners.has(layer.index)).length;
      const scored = other.graph.frames.filter(({ kind }) => kind === "block" || kind === "layer").map((one) => {
        const common = shared(one);
        return [common / (partners.size + other.graph.summary(one).count - common), one];
      });
      const [score, best] = scored.reduce((a, b) => (b[0] > a[0] ? b : a), [0.5, null]);
      if (best && score > 0.5) { best.folded = frame.folded; other.place(); other.draw(); }
    }
    this.busy = false;
  }

  boxOf(page, layer) {
    const { graph, placed } = page;
    let item = graph.itemOf(layer);
    for (let f = graph.home.get(item); f !== undefined && f !== null; f = graph.frames[f].parent) if (graph.frames[f].folded) item = ~f;
    return placed.byItem.get(item);
  }

  // The middles of the boxes of each pair, from top to bottom of one graph.
  pairsFrom(side) {
    const [one, other] = [this.pages[side], this.pages[1 - side]];
    if (!this.anchors || this.anchors.of[0] !== this.pages[0].placed || this.anchors.of[1] !== this.pages[1].placed) {
      this.anchors = { of: this.pages.map((page) => page.placed), sides: [null, null] };
    }
    this.anchors.sides[side] = this.anchors.sides[side] || this.rows.flatMap((row) => {
      if (row.a === null || row.b === null) return [];
      const boxes = [this.boxOf(one, row[SIDES[side]]), this.boxOf(other, row[SIDES[1 - side]])];
      return boxes.every((box) => box && !box.open) ? [boxes.map((box) => [box.x + box.w / 2, box.y + box.h / 2])] : [];
    }).sort((a, b) => a[0][1] - b[0][1]);
    return this.anchors.sides[side];
  }

  // Moves the other graph to where the partners are of what is in the middle, or of an item.
  moved(page, item) {
    const side = this.pages.indexOf(page), other = this.pages[1 - side];
    if (!other || this.busy || !page.width || !other.width) return;
    const { x, y, scale } = page.view, pairs = this.pairsFrom(side);
    const box = item === undefined || item === null ? null : page.placed.byItem.get(item);
    const partner = box && other.selected !== null ? other.placed.byItem.get(other.selected) : null;
    let from = [x + page.width / 2 / scale, y + page.height / 2 / scale], to;
    if (partner) { from = [box.x + box.w / 2, box.y + Math.min(box.h, 60) / 2]; to = [partner.x + partner.w / 2, partner.y + Math.min(partner.h, 60) / 2]; }
    else if (pairs.length) {
      let low = 0, high = pairs.length;
      while (low < high) { const middle = (low + high) >> 1; if (pairs[middle][0][1] <= from[1]) low = middle + 1; else high = middle; }
      const above = pairs[Math.max(0, low - 1)], below = pairs[Math.min(pairs.length - 1, low)];
      const part = below[0][1] > above[0][1] ? Math.min(1, Math.max(0, (from[1] - above[0][1]) / (below[0][1] - above[0][1]))) : 0;
      const nearest = part < 0.5 ? above : below;
      const beyond = Math.min(0, from[1] - above[0][1]) + Math.max(0, from[1] - below[0][1]);
      to = [nearest[1][0] + from[0] - nearest[0][0], above[1][1] + part * (below[1][1] - above[1][1]) + beyond];
    } else return;
    this.busy = true;
    other.view = { scale, x: to[0] - (from[0] - x) * (other.width / page.width), y: to[1] - (from[1] - y) };
    other.draw();
    this.busy = false;
  }

  close() {
    for (const page of this.pages) page.select(null);
  }

  openAside(parts) {
    this.aside.replaceChildren(make("button", "✕", { type: "button", class: "close", "aria-label": "close", onclick: () => this.close() }), ...parts);
    this.aside.hidden = false;
    this.aside.scrollTop = 0;
    for (const page of this.pages) page.resize();
  }

  link(i, of) {
    const row = this.rows[i], side = this.pages.length === 1 || row.b === null ? 0 : of ?? 1;
    const layer = this.pages[side].graph.layers[this.pages.length === 1 ? row.b : row[SIDES[side]]];
    const ratio = row.q === undefined || row.q === null ? "" : ` ${decibels(row.q)}`;
    return make("div", [this.swatch(row.s), make("button", layer.n || layer.t, { type: "button", class: "link", onclick: () => this.open(i) }), ` ${layer.t}${ratio}`]);
  }

  list(state) {
    const rows = this.rows.flatMap((row, i) => (row.s === state ? [i] : []));
    this.openAside([make("h2", this.states[state][0]), ...rows.slice(0, 500).map((i) => this.link(i)),
      ...(rows.length > 500 ? [make("p", `and ${(rows.length - 500).toLocaleString("en")} more`)] : [])]);
  }

  fill(rows) {
    const parts = rows.length ? rows.slice(0, 12).flatMap((i) => this.row(this.rows[i], i)) : [make("p", "not compared")];
    this.pages.forEach((page, side) => {
      const layer = page.selected === null ? null : page.graph.layerOf(page.selected);
      if (page.selected === null) return;
      if (layer) this.inputs(parts, page, side, layer);
      const title = this.pages.length === 1 ? "The layer" : `Layer in ${"AB"[side]}`;
      const fold = make("details", [make("summary", layer ? title : title.replace("Layer", "Block")), page.panel.element]);
      fold.open = !rows.length;
      parts.push(fold);
    });
    this.openAside(parts);
  }

  row(row, i) {
    const names = SIDES.flatMap((side, k) => (row[side] === null || !this.pages[k] ? [] : [this.pages[k].graph.layers[row[side]]]));
    const layer = names[names.length - 1] || this.pages[0].graph.layers[row.b];
    const parts = [make("h2", [this.swatch(row.s), layer.t]), make("p", make("code", layer.p + layer.n)), make("p", make("b", this.states[row.s][0] + (i === this.first ? ", the first" : "")))];
    const facts = row.q === undefined ? row.f : [...row.f, ["SNR", decibels(row.q)]];
    if (facts.length) parts.push(this.pages[0].panel.table(facts));
    if (row.v) this.tensors(parts, row.v);
    return parts;
  }

  // The inputs of a layer with the state of each.
  inputs(parts, page, side, layer) {
    const sources = page.graph.before[layer.index].flatMap(([, source]) => (this.rowsOf[side].get(source) || []).slice(0, 1));
    if (sources.length) parts.push(make("h3", this.pages.length === 1 ? "Inputs" : `Inputs in ${"AB"[side]}`), ...sources.map((i) => this.link(i, side)));
  }

  tensors(parts, { labels, low, high, counts, stats, values, image }) {
    const key = labels.map((label, k) => [make("span", null, { class: "key", style: `background:${COLOURS[k]}` }), `${label} `]).flat();
    parts.push(make("p", key));
    if (counts) parts.push(histogram(counts), make("p", `${low} to ${high}`, { class: "range" }));
    if (image) {
      const titles = [...labels, image.title];
      parts.push(make("div", image.planes.map((plane, k) => make("figure", [pixels(plane, image.w, image.h), make("figcaption", titles[titles.length - image.planes.length + k])])), { class: "planes" }));
    }
    const table = (head, rows) => make("table", [make("thead", make("tr", head.map((one) => make("th", one)))), make("tbody", rows.map((row) => make("tr", row.map((one) => make("td", one)))))], { class: "numbers" });
    if (stats) parts.push(table(["", ...labels], stats));
    if (values && values.length) parts.push(table(["at", ...labels, ...(values[0].length > 3 ? ["interval"] : [])], values));
  }
}

function decibels(ratio) {
  return ratio === null ? "equal" : `${ratio} dB`;
}

// Both histograms over one range: each is as high as its largest count.
function histogram(counts) {
  const canvas = make("canvas", null, { class: "histogram", width: 640, height: 160, role: "img", "aria-label": "histograms of both tensors" });
  const context = canvas.getContext("2d");
  counts.forEach((bars, k) => {
    if (!bars) return;
    const most = Math.max(1, ...bars), wide = 640 / bars.length;
    context.fillStyle = COLOURS[k];
    context.globalAlpha = 0.65;
    bars.forEach((bar, i) => { const high = bar && Math.max(2, (156 * bar) / most); context.fillRect(i * wide + (k * wide) / 2, 160 - high, wide / 2 - 1, high); });
  });
  return canvas;
}

function pixels(text, width, height) {
  const canvas = make("canvas", null, { width, height, class: "pixels" }), context = canvas.getContext("2d");
  const image = context.createImageData(width, height), bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  bytes.forEach((byte, i) => image.data.set([byte, byte, byte, 255], 4 * i));
  context.putImageData(image, 0, 0);
  return canvas;
}

for (const root of document.querySelectorAll(".irexec-beside:not([data-linked])")) {
  root.dataset.linked = "yes";
  root.irexecBeside = new Beside(root);
}
