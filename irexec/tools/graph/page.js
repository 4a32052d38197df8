// The page: what is seen of the graph, and what the mouse, fingers and keys do.

const MOST = 4, LEAST = 0.0002, MOVED = 5, STEP = 60;

class Page {
  constructor(root) {
    this.root = root;
    this.graph = new Graph(JSON.parse(root.querySelector('script[type="application/json"]').textContent));
    this.canvas = root.querySelector("canvas");
    this.context = this.canvas.getContext("2d");
    this.painter = new Painter(this.graph);
    this.dark = matchMedia("(prefers-color-scheme: dark)");
    this.view = { x: 0, y: 0, scale: 1 };
    this.selected = null;
    const hooks = { show: (layer) => this.showLayer(layer), toggle: (frame) => this.toggle(~frame.index), close: () => this.select(null) };
    this.panel = new Panel(root.querySelector(".details"), this.graph, hooks);
    const said = root.querySelector(".said");
    this.search = new Search(root.querySelector("input"), root.querySelector(".results"), this.graph,
      { show: (layer) => this.showLayer(layer), say: (text) => { said.textContent = text; }, leave: () => this.canvas.focus() });
    this.say = (text) => { said.textContent = text; };
    this.pointers = new Map();
    this.place();
    this.listen();
    this.legend();
    this.resize();
    this.begin();
  }

  place() {
    this.placed = place(this.graph);
    this.painter.texts.clear();
  }

  listen() {
    const { canvas, root } = this;
    new ResizeObserver(() => { this.resize(); this.keep(); }).observe(canvas);
    // The middle stays in the middle when the window gets narrower, as a phone that is turned. Linked graphs move each other.
    addEventListener("resize", () => {
      const before = this.width;
      this.resize();
      if (before && this.width && !this.linked) this.pan((this.width - before) / 2, 0);
    });
    this.dark.addEventListener("change", () => { this.legend(); this.draw(); });
    canvas.addEventListener("pointerdown", (event) => this.press(event));
    canvas.addEventListener("pointermove", (event) => this.move(event));
    for (const name of ["pointerup", "pointercancel"]) canvas.addEventListener(name, (event) => this.release(event));
    canvas.addEventListener("dblclick", (event) => this.twice(event));
    canvas.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    root.addEventListener("keydown", (event) => this.key(event));
    root.addEventListener("click", (event) => this.button(event.target.closest("[data-do]")?.dataset.do));
    addEventListener("beforeprint", () => this.print());
    addEventListener("afterprint", () => root.querySelector(".prints").replaceChildren());
  }

  legend() {
    const rows = this.graph.legend().map(([title, ...colours]) => make("li", [swatch(colours, this.dark.matches), title]));
    this.root.querySelector(".legend ul").replaceChildren(...rows);
  }

  resize() {
    const { clientWidth, clientHeight } = this.canvas, ratio = devicePixelRatio || 1;
    const fresh = !this.width || !this.height;
    this.width = clientWidth; this.height = clientHeight; this.ratio = ratio;
    this.canvas.width = Math.max(1, Math.round(clientWidth * ratio));
    this.canvas.height = Math.max(1, Math.round(clientHeight * ratio));
    if (fresh) this.begin();
    this.paint();
  }

  // At first all of the width is seen, as long as texts are readable, from the top on; of a wider graph the part with the most boxes.
  begin() {
    if (!this.width || !this.height) return;
    const fit = this.fitScale();
    const scale = Math.min(1, Math.max(fit, Math.min(0.8, (this.width - 16) / this.placed.width), READABLE));
    const high = this.placed.boxes.filter((box) => box.y < this.height / scale).slice(0, 500), reach = this.width / scale / 2 - WIDTH / 2;
    const near = (x) => high.filter((box) => Math.abs(box.x + WIDTH / 2 - x) <= reach).length;
    const [most] = high.map((box) => box.x + WIDTH / 2).map((x) => [near(x), x]).sort((a, b) => b[0] - a[0]);
    const centre = this.placed.width * scale <= this.width || !most ? this.placed.width / 2 : most[1];
    const y = this.placed.height * scale <= this.height ? this.placed.height / 2 : this.height / scale / 2;
    this.view = { scale, x: centre - this.width / scale / 2, y: y - this.height / scale / 2 };
    this.draw();
  }

  fitScale() {
    return Math.max(LEAST, Math.min(1.5, this.width / this.placed.width, this.height / this.placed.height));
  }

  fit() {
    const scale = this.fitScale();
    this.view = { scale, x: (this.placed.width - this.width / scale) / 2, y: (this.placed.height - this.height / scale) / 2 };
    this.draw();
  }

  draw() {
    this.linked?.moved(this);
    if (!this.frame) this.frame = requestAnimationFrame(() => this.paint());
  }

  paint() {
    cancelAnimationFrame(this.frame);
    this.frame = 0;
    if (!this.width || !this.height) return;
    const { x, y, scale } = this.view;
    this.context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    this.painter.paint(this.context, this.placed,
      { scale, left: x, top: y, width: this.width / scale, height: this.height / scale }, this.selected, this.dark.matches);
  }

  zoom(factor, atX = this.width / 2, atY = this.height / 2) {
    const scale = Math.min(MOST, Math.max(Math.min(LEAST, this.fitScale()), this.view.scale * factor));
    const x = this.view.x + atX / this.view.scale, y = this.view.y + atY / this.view.scale;
    this.view = { scale, x: x - atX / scale, y: y - atY / scale };
    this.draw();
  }

  pan(dx, dy) {
    const { scale } = this.view;
    // Some of the graph stays in sight.
    const kept = (value, size, seen) => Math.min(Math.max(value, -seen + 40 / scale), size - 40 / scale);
    this.view.x = kept(this.view.x - dx / scale, this.placed.width, this.width / scale);
    this.view.y = kept(this.view.y - dy / scale, this.placed.height, this.height / scale);
    this.draw();
  }

  // The selected box stays in sight where the panel or a narrower window takes room.
  keep() {
    const box = this.placed.byItem.get(this.selected), { x, y, scale } = this.view;
    if (!box || !this.width || !this.height) return;
    const beyond = (at, size, from, seen) => Math.max(Math.min(0, at - 8 - from), Math.min(at - 8 - from, at + size + 8 - from - seen));
    this.pan(-scale * beyond(box.x, box.w, x, this.width / scale), -scale * beyond(box.y, box.h, y, this.height / scale));
  }

  // The innermost box or frame at a point of the canvas; null where there is none.
  at(x, y) {
    const px = x + this.view.x * this.view.scale, py = y + this.view.y * this.view.scale, { scale } = this.view;
    const hit = (box) => px >= box.x * scale - 2 && px <= (box.x + box.w) * scale + 2 && py >= box.y * scale - 2 && py <= (box.y + box.h) * scale + 2;
    const box = this.placed.boxes.find(hit);
    if (box) return box;
    return this.placed.frames.filter((frame) => hit(frame) && py <= (frame.y + HEAD) * scale).pop() || null;
  }

  select(item, layer) {
    this.selected = item;
    if (item === null) this.panel.clear(); else this.panel.fill(item, layer);
    if (item !== null) {
      const about = layer === undefined ? this.graph.layerOf(item) : this.graph.layers[layer];
      this.say(about ? `${about.t} ${about.n}` : `block ${this.graph.frames[~item].name}`);
      // For a page around this one, which may show more of the layer.
      if (about) this.root.dispatchEvent(new CustomEvent("irexec-select", { bubbles: true, detail: about.n }));
    }
    this.linked?.selected(this, item, layer);
    this.draw();
  }

  showLayer(index) {
    const item = this.graph.itemOf(index);
    if (this.graph.reveal(item)) this.place();
    const isDrawnElsewhere = this.graph.layers[index].h !== undefined;
    this.select(item, isDrawnElsewhere ? index : undefined);
    // The panel may have taken a part of the width.
    requestAnimationFrame(() => { this.resize(); this.centre(item); });
  }

  centre(item) {
    const box = this.placed.byItem.get(item);
    if (!box) return;
    const scale = Math.max(this.view.scale, 0.8);
    this.view = { scale, x: box.x + box.w / 2 - this.width / scale / 2, y: box.y + Math.min(box.h, this.height / scale) / 2 - this.height / scale / 2 };
    this.draw();
  }

  // Folds or unfolds a frame; it stays where it is on the screen.
  toggle(item) {
    const frame = this.graph.frames[~item], old = this.placed.byItem.get(item);
    if (frame.kind === "body" || frame.index === 0) return;
    frame.folded = !frame.folded;
    this.place();
    const box = this.placed.byItem.get(item);
    if (old && box) {
      this.view.x += box.x + box.w / 2 - old.x - old.w / 2;
      this.view.y += box.y - old.y;
    }
    if (this.selected === item) this.panel.fill(item);
    this.linked?.toggled(this, frame);
    this.draw();
  }

  foldAll(folded) {
    for (const frame of this.graph.frames) if (frame.kind === "block" || frame.kind === "layer") frame.folded = folded;
    if (this.selected !== null && !this.placed.byItem.has(this.selected)) this.select(null);
    this.place();
    this.linked?.toggled(this, null, folded);
    this.fit();
    if (this.view.scale < READABLE) this.begin();
  }

  button(name) {
    if (name === "findings" || name === "times") { this.selected = null; this.draw(); }
    const actions = {
      in: () => this.zoom(1.4), out: () => this.zoom(1 / 1.4), fit: () => this.fit(), fold: () => this.foldAll(true), unfold: () => this.foldAll(false),
      findings: () => this.panel.findings(), times: () => this.panel.times(),
      help: () => this.root.querySelector("dialog").showModal(), "close-help": () => this.root.querySelector("dialog").close(),
    };
    actions[name]?.();
  }

  point(event) {
    const { left, top } = this.canvas.getBoundingClientRect();
    return [event.clientX - left, event.clientY - top];
  }

  press(event) {
    if (event.button) return;
    this.canvas.setPointerCapture(event.pointerId);
    const [x, y] = this.point(event);
    this.pointers.set(event.pointerId, { x, y, startX: x, startY: y });
    if (this.pointers.size > 1) this.pinched = true;
  }

  move(event) {
    const [x, y] = this.point(event), pointer = this.pointers.get(event.pointerId);
    if (!pointer) {
      if (event.pointerType === "mouse") this.canvas.classList.toggle("over", this.at(x, y) !== null);
      return;
    }
    if (this.pointers.size === 1) {
      pointer.dragged = pointer.dragged || Math.hypot(x - pointer.startX, y - pointer.startY) > MOVED;
      if (pointer.dragged) { this.canvas.classList.add("moving"); this.pan(x - pointer.x, y - pointer.y); } else return;
    } else {
      const other = [...this.pointers].find(([id]) => id !== event.pointerId)[1];
      const before = Math.hypot(pointer.x - other.x, pointer.y - other.y), after = Math.hypot(x - other.x, y - other.y);
      if (before > 0) this.zoom(after / before, (x + other.x) / 2, (y + other.y) / 2);
      this.pan((x - pointer.x) / 2, (y - pointer.y) / 2);
    }
    pointer.x = x; pointer.y = y;
  }

  release(event) {
    const pointer = this.pointers.get(event.pointerId);
    this.pointers.delete(event.pointerId);
    this.canvas.classList.remove("moving");
    if (pointer && !pointer.dragged && !this.pinched && event.type === "pointerup") {
      const box = this.at(...this.point(event));
      this.select(box ? box.item : null);
    }
    if (!this.pointers.size) this.pinched = false;
  }

  twice(event) {
    const box = this.at(...this.point(event));
    if (box && box.item < 0) this.toggle(box.item);
  }

  // In a page with more than the graph the wheel moves the page, unless the graph was clicked.
  wheel(event) {
    const mine = this.root.classList.contains("whole") || document.activeElement === this.canvas;
    if (!mine && !event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    const unit = event.deltaMode === 1 ? 16 : event.deltaMode === 2 ? this.height : 1;
    const dx = event.deltaX * unit, dy = event.deltaY * unit;
    if (event.ctrlKey || event.metaKey) this.zoom(Math.exp(-Math.max(-60, Math.min(60, dy)) / 150), ...this.point(event));
    else if (event.shiftKey && !dx) this.pan(-dy, 0);
    else this.pan(-dx, -dy);
  }

  key(event) {
    if (event.target.matches("input, dialog *") || event.altKey || event.ctrlKey || event.metaKey) return;
    const isCanvas = event.target === this.canvas;
    const arrows = { ArrowUp: [0, -1], ArrowDown: [0, 1], ArrowLeft: [-1, 0], ArrowRight: [1, 0] };
    if (event.key === "/") this.search.field.focus();
    else if (event.key === "?") this.button("help");
    else if (event.key === "Escape") { this.select(null); this.canvas.focus(); }
    else if (!isCanvas) return;
    else if (event.key === "+" || event.key === "=") this.zoom(1.25);
    else if (event.key === "-") this.zoom(0.8);
    else if (event.key === "0") this.fit();
    else if ((event.key === "Enter" || event.key === " ") && this.selected !== null && this.selected < 0) this.toggle(this.selected);
    else if (event.key in arrows && !event.shiftKey) this.step(...arrows[event.key]);
    else if (event.key in arrows) this.pan(-arrows[event.key][0] * STEP, -arrows[event.key][1] * STEP);
    else return;
    event.preventDefault();
  }

  // Selects the next box in a direction: along a line upwards and downwards, in the same frame sideways.
  step(dx, dy) {
    const box = this.placed.byItem.get(this.selected);
    let next;
    if (!box) next = this.placed.boxes.reduce((best, one) => (!best || one.y < best.y ? one : best), null);
    else if (dy) {
      const lines = this.placed.lines.filter((line) => (dy > 0 ? line.source : line.target) === box.item);
      const items = lines.map((line) => (dy > 0 ? line.target : line.source)).filter((item) => item !== null && item !== box.item);
      next = items.map((item) => this.placed.byItem.get(item)).sort((a, b) => Math.abs(a.x - box.x) - Math.abs(b.x - box.x))[0];
      next = next || this.nearest(box, (one) => (one.y - box.y) * dy > 0);
    } else next = this.nearest(box, (one) => one.frame === box.frame && one.row === box.row && (one.x - box.x) * dx > 0);
    if (!next) return;
    this.select(next.item);
    requestAnimationFrame(() => { this.resize(); this.centre(next.item); });
  }

  nearest(box, isWanted) {
    let best = null, closest = Infinity;
    for (const one of this.placed.boxes) {
      const distance = Math.hypot(one.x - box.x, one.y - box.y);
      if (one !== box && distance < closest && isWanted(one)) { best = one; closest = distance; }
    }
    return best;
  }

  // Images of what is unfolded, one below the other, each of at most a page.
  print() {
    const pageWidth = 680, pageHeight = 860, pages = 24;
    const { width, height } = this.placed;
    const scale = Math.min(1, pageWidth / width, Math.max(pageHeight / height, (pages * pageHeight) / height));
    const images = [];
    for (let top = 0; top < height && images.length < pages; top += pageHeight / scale) {
      const part = Math.min(pageHeight / scale, height - top), canvas = document.createElement("canvas");
      canvas.width = Math.ceil(width * scale * 2);
      canvas.height = Math.ceil(part * scale * 2);
      const context = canvas.getContext("2d");
      context.setTransform(2, 0, 0, 2, 0, 0);
      this.painter.paint(context, this.placed, { scale, left: 0, top, width, height: part, ground: "#ffffff" }, null, false);
      const image = make("img", null, { src: canvas.toDataURL("image/png"), alt: `graph of the model, part ${images.length + 1}` });
      image.style.width = `${width * scale}px`;
      images.push(image);
    }
    this.root.querySelector(".prints").replaceChildren(...images);
  }
}

for (const root of document.querySelectorAll(".irexec-graph:not([data-ready])")) {
  root.dataset.ready = "yes";
  root.irexecGraph = new Page(root);
}
