// What is said of the selected layer or block, and the list of what a search finds. Every text is set as text, never as markup.

function make(tag, content, attributes) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name === "onclick") made.addEventListener("click", value); else made.setAttribute(name, value);
  }
  for (const part of [content].flat()) if (part !== null && part !== undefined) made.append(part);
  return made;
}

function swatch(colours, isDark) {
  const box = make("span", null, { class: "swatch" });
  [box.style.background, box.style.borderColor] = isDark ? colours.slice(2) : colours;
  return box;
}

class Panel {
  // `show` is called with the index of a layer that a reader wants to see, `toggle` with a frame, `close` with nothing.
  constructor(element, graph, { show, toggle, close }) {
    Object.assign(this, { element, graph, show, toggle, close });
  }

  clear() {
    this.element.hidden = true;
    this.element.replaceChildren();
  }

  open(parts) {
    this.element.replaceChildren(make("button", "✕", { type: "button", class: "close", "aria-label": "close", onclick: () => this.close() }), ...parts);
    this.element.hidden = false;
    this.element.scrollTop = 0;
  }

  // All findings, the worst first: those of layers with a link to it.
  findings() {
    const rows = this.graph.layers.flatMap((layer) => layer.w.map((finding) => [finding, layer])).concat(this.graph.findings.map((finding) => [finding, null]));
    rows.sort((a, b) => SEVERITIES.indexOf(a[0][0]) - SEVERITIES.indexOf(b[0][0]));
    const parts = rows.slice(0, 1000).map(([finding, layer]) => make("div", [
      ...(layer ? [this.link(layer.index)] : [make("code", finding[4] || "the model")]), this.finding(finding)]));
    if (rows.length > 1000) parts.push(make("p", `and ${rows.length - 1000} more`));
    this.open([make("h2", "Findings"), ...parts]);
  }

  // The slowest layers.
  times() {
    const timed = this.graph.layers.filter((layer) => layer.ms !== undefined).sort((a, b) => b.ms - a.ms);
    const rows = timed.slice(0, 200).map((layer) => make("tr", [
      make("td", `${time(layer.ms)} ${layer.sh === undefined ? "" : `${(100 * layer.sh).toFixed(1)} %`}`), make("td", [this.link(layer.index), ` ${layer.t}`])]));
    this.open([make("h2", "Slowest layers"), make("table", make("tbody", rows))]);
  }

  fill(item, layerIndex) {
    const layer = layerIndex === undefined ? this.graph.layerOf(item) : this.graph.layers[layerIndex];
    const frame = item < 0 ? this.graph.frames[~item] : null;
    const parts = layer ? this.layer(layer) : this.block(frame);
    if (frame) {
      const text = frame.folded ? "Unfold" : "Fold";
      parts.splice(layer ? 2 : 1, 0, make("p", make("button", text, { type: "button", class: "toggle", onclick: () => this.toggle(frame) })));
    }
    this.open(parts);
  }

  block(frame) {
    const summary = this.graph.summary(frame);
    const rows = [["layers", String(summary.count)], ...(summary.ms === undefined ? [] : [["time", time(summary.ms)]])];
    return [
      make("h2", frame.name),
      this.table(rows),
      make("h3", "Operations"),
      this.table(summary.types.map(([type, n]) => [type, String(n)])),
      make("h3", "Layers"),
      ...this.graph.inside(frame).slice(0, 200).map((layer) => make("div", this.link(layer.index))),
    ];
  }

  layer(layer) {
    const parts = [make("h2", layer.t), make("p", make("code", layer.p + layer.n))];
    const [, family] = this.graph.families[layer.f];
    const rows = [["id", String(layer.i)], ["version", layer.v || "none"], ["family", family]];
    if (layer.l !== undefined) rows.push(["line of the .xml", String(layer.l)]);
    if (layer.h !== undefined) rows.push(["drawn in", this.link(layer.h)]);
    if (layer.ms !== undefined) rows.push(["time", time(layer.ms) + (layer.sh === undefined ? "" : ` (${(100 * layer.sh).toFixed(1)} %)`)]);
    if (layer.al !== undefined) rows.push(["computed along with", layer.al]);
    if (layer.c) {
      if (layer.c[0] !== 0) rows.push(["MACs", amount(layer.c[0])]);
      if (layer.c[1]) rows.push(["parameters", amount(layer.c[1])]);
      rows.push(["bytes read, written", amount(layer.c[2])]);
    }
    parts.push(this.table(rows));
    this.section(parts, "Findings", layer.w.map((finding) => this.finding(finding)));
    if (layer.a.length) parts.push(make("h3", "Attributes"), this.table(layer.a));
    const from = new Map(this.graph.before[layer.index]);
    this.section(parts, "Inputs", layer.in.map(([port, fact, name], i) => (
      make("div", [`${port}: `, make("code", fact), " from ", from.has(i) ? this.link(from.get(i)) : name ?? "nothing"]))));
    this.section(parts, "Outputs", layer.out.map(([port, fact, names], i) => {
      const to = this.graph.after[layer.index].filter(([output]) => output === i).map(([, target]) => target);
      const links = to.slice(0, 50).flatMap((target, k) => [k ? ", " : " to ", this.link(target)]);
      if (to.length > 50) links.push(` and ${to.length - 50} more`);
      return make("div", [`${port}: `, make("code", fact), ...(names.length ? [" ", make("code", names.join(", "))] : []), ...links]);
    }));
    this.section(parts, "Before it, not in this graph", layer.b.map((name) => make("div", make("code", name))));
    this.section(parts, "After it, not in this graph", layer.z.map((name) => make("div", make("code", name))));
    for (const i of layer.k) this.constant(parts, this.graph.layers[i]);
    if (layer.s) parts.push(make("h3", "Values"), this.table(Object.entries(layer.s)));
    return parts;
  }

  constant(parts, layer) {
    parts.push(make("h3", [`${layer.t} `, this.link(layer.index)]));
    const facts = layer.out.map(([, fact]) => fact).join(", ");
    parts.push(this.table([["type and shape", facts], ...Object.entries(layer.s || {})]));
    this.section(parts, null, layer.w.map((finding) => this.finding(finding)));
  }

  finding([severity, code, message, line]) {
    return make("p", [make("b", `${severity} ${code}`, { class: severity }), ` ${message}`, line === null ? null : ` (line ${line})`]);
  }

  section(parts, title, content) {
    if (content.length) parts.push(...(title ? [make("h3", title)] : []), ...content);
  }

  table(rows) {
    return make("table", make("tbody", rows.map(([name, value]) => make("tr", [make("th", name, { scope: "row" }), make("td", value)]))));
  }

  link(index) {
    const layer = this.graph.layers[index];
    return make("button", layer.n || layer.t, { type: "button", class: "link", title: layer.t, onclick: () => this.show(index) });
  }
}

class Search {
  constructor(field, list, graph, { show, say, leave }) {
    Object.assign(this, { field, list, graph, show, say, leave, chosen: -1 });
    list.id = list.id || `results-${Math.random().toString(36).slice(2)}`;
    field.setAttribute("aria-controls", list.id);
    field.addEventListener("input", () => this.find());
    field.addEventListener("focus", () => { if (field.value) this.find(); });
    field.addEventListener("keydown", (event) => this.key(event));
    list.addEventListener("pointerdown", (event) => event.preventDefault());
    list.addEventListener("click", (event) => this.take(event.target.closest("[role=option]")));
    field.addEventListener("blur", () => this.close());
  }

  find() {
    const { found, total } = this.graph.search(this.field.value, 100);
    const rows = found.map((layer, i) => make("li", [layer.n || "no name", " ", make("small", `${layer.t} ${layer.out.map(([, fact]) => fact).join(" ")} ${layer.p}`)],
      { role: "option", id: `${this.list.id}-${i}`, "data-layer": layer.index, "aria-selected": "false" }));
    if (total > found.length) rows.push(make("li", `and ${total - found.length} more`, { class: "more" }));
    if (this.field.value.trim() && !total) rows.push(make("li", "no layer, type or tensor has this in its name", { class: "more" }));
    this.list.replaceChildren(...rows);
    this.list.hidden = !rows.length;
    this.field.setAttribute("aria-expanded", String(rows.length > 0));
    this.choose(-1);
    if (this.field.value.trim()) this.say(`${total} found`);
  }

  options() {
    return this.list.querySelectorAll("[role=option]");
  }

  choose(index) {
    const options = this.options();
    this.chosen = options.length ? Math.max(-1, Math.min(index, options.length - 1)) : -1;
    options.forEach((option, i) => option.setAttribute("aria-selected", String(i === this.chosen)));
    if (this.chosen >= 0) {
      options[this.chosen].scrollIntoView({ block: "nearest" });
      this.field.setAttribute("aria-activedescendant", options[this.chosen].id);
    } else this.field.removeAttribute("aria-activedescendant");
  }

  key(event) {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") this.choose(this.chosen + (event.key === "ArrowDown" ? 1 : -1));
    else if (event.key === "Enter") this.take(this.options()[Math.max(0, this.chosen)]);
    else if (event.key === "Escape") { this.close(); this.leave(); } else return;
    event.preventDefault();
    event.stopPropagation();
  }

  take(option) {
    if (!option) return;
    this.close();
    this.show(Number(option.dataset.layer));
  }

  close() {
    this.list.hidden = true;
    this.field.setAttribute("aria-expanded", "false");
  }
}
