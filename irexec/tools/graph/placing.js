// Everything that is unfolded, in pixels. The document has the layout of each frame with all frames in it folded; where a reader unfolds
// some, the rest moves apart. The sizes WIDTH, GAP_Y, PAD, HEAD and CUT are those of irexec.tools.graph.

// Positions in one direction: each span [low, high, extra] becomes longer by `extra`; where several overlap, by as much as one needs.
class Stretch {
  constructor(spans) {
    this.ends = Float64Array.from(new Set(spans.flatMap(([low, high]) => [low, high]))).sort();
    this.more = new Float64Array(this.ends.length);
    for (let i = 1; i < this.ends.length; i++) {
      const low = this.ends[i - 1], high = this.ends[i];
      const slopes = spans.map(([from, to, extra]) => (from <= low && high <= to ? extra / (to - from) : 0));
      this.more[i] = this.more[i - 1] + Math.max(0, ...slopes) * (high - low);
    }
  }

  at(position) {
    const { ends, more } = this, last = ends.length - 1;
    if (last < 0 || position <= ends[0]) return position;
    if (position >= ends[last]) return position + more[last];
    let low = 0, high = last;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (ends[middle] <= position) low = middle; else high = middle;
    }
    return position + more[low] + ((more[high] - more[low]) * (position - ends[low])) / (ends[high] - ends[low]);
  }
}

class Places {
  // The positions in one unfolded frame, relative to the corner of its content.
  constructor(graph, frame, inner) {
    Object.assign(this, { graph, frame, entries: new Map(frame.entries), exits: new Map(frame.exits) });
    this.open = new Map(frame.items.filter((item) => graph.isOpen(item)).map((item) => [item, inner.get(~item)]));
    const rectangles = frame.items.map((item, i) => {
      const [x, y, h] = frame.positions[i], content = this.open.get(item);
      const size = content ? [content.width + 2 * PAD, content.height + 2 * PAD + HEAD] : [WIDTH, h];
      return { item, row: frame.rows[i], left: x - WIDTH / 2, top: y, right: x + WIDTH / 2, bottom: y + h, w: size[0], h: size[1] };
    });
    const larger = rectangles.filter(({ item }) => this.open.has(item));
    this.x = new Stretch(larger.map(({ left, right, w }) => [left, right, Math.max(0, w - WIDTH)]));
    this.y = new Stretch(larger.map(({ top, bottom, h }) => [top, bottom, Math.max(0, h - bottom + top)]));
    this.width = this.x.at(frame.width);
    this.height = this.y.at(frame.height);
    this.boxes = new Map(rectangles.map(({ item, row, left, top, right, bottom, w, h }) => [item, {
      item, row, w, h, x: (this.x.at(left) + this.x.at(right) - w) / 2, y: (this.y.at(top) + this.y.at(bottom) - h) / 2 }]));
  }

  // Adds boxes and lines of the frame, whose content begins at (x, y), and of the frames in it.
  put(placed, x, y, depth) {
    for (const box of this.boxes.values()) {
      const content = this.open.get(box.item);
      const put = { ...box, x: x + box.x, y: y + box.y, open: Boolean(content), depth, frame: this.frame.index };
      (content ? placed.frames : placed.boxes).push(put);
      placed.byItem.set(box.item, put);
      content?.put(placed, put.x + PAD, put.y + PAD + HEAD, depth + 1);
    }
    const outputs = new Map();
    for (const [source, , tensor] of this.frame.links) {
      if (!outputs.has(source)) outputs.set(source, new Set());
      outputs.get(source).add(tensor);
    }
    for (const link of this.frame.links) placed.lines.push(this.line(link, x, y, outputs));
  }

  line([source, target, tensor, bends], x, y, outputs) {
    const points = [...this.end(source, tensor, true), ...(bends || []).map((at, i) => (i % 2 ? this.y : this.x).at(at)), ...this.end(target, tensor, false)];
    let low = Infinity, high = -Infinity;
    points.forEach((at, i) => {
      points[i] += i % 2 ? y : x;
      if (i % 2) { low = Math.min(low, points[i]); high = Math.max(high, points[i]); }
    });
    // A line that leaves an unfolded frame has its label where it leaves the layer in the frame.
    const labelled = source !== null && !this.open.has(source);
    const atEnd = bends === null || (labelled && outputs.get(source).size > 1);
    return { points, tensor, source, target, low, high, straight: bends === null, label: labelled ? (atEnd ? "end" : "start") : "" };
  }

  end(item, tensor, isSource) {
    if (item === null) return isSource ? [this.x.at(this.entries.get(tensor)), -PAD - HEAD] : [this.x.at(this.exits.get(tensor)), this.height + PAD];
    const box = this.boxes.get(item), content = this.open.get(item), port = content?.[isSource ? "exits" : "entries"].get(tensor);
    return [port === undefined ? box.x + box.w / 2 : box.x + PAD + content.x.at(port), isSource ? box.y + box.h : box.y];
  }
}

function place(graph) {
  const inner = new Map();
  for (let i = graph.frames.length - 1; i >= 0; i--) {
    if (i === 0 || graph.isUnfolded(i)) inner.set(i, new Places(graph, graph.frames[i], inner));
  }
  const placed = { boxes: [], frames: [], lines: [], byItem: new Map() }, whole = inner.get(0);
  const margin = graph.isCut ? CUT : PAD;
  whole.put(placed, margin, margin, 0);
  placed.width = whole.width + 2 * margin;
  placed.height = whole.height + 2 * margin;
  placed.bands = intoBands(placed);
  return placed;
}

// What is in each band of rows, so that only what can be seen is drawn.
const BAND = 600;

function intoBands(placed) {
  const bands = [];
  const add = (kind, index, low, high) => {
    for (let k = Math.max(0, Math.floor(low / BAND)); k <= Math.floor(high / BAND); k++) {
      bands[k] = bands[k] || { boxes: [], lines: [] };
      bands[k][kind].push(index);
    }
  };
  placed.boxes.forEach((box, i) => add("boxes", i, box.y - GAP_Y, box.y + box.h + GAP_Y));
  placed.lines.forEach((line, i) => add("lines", i, line.low, line.high));
  return bands;
}
