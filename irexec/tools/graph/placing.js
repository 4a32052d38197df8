// Where boxes and lines go: the same as irexec/tools/graph/placing.py, computed again whenever a frame is folded or unfolded.
// Columns and rows come from the document; here they become pixels, with boxes as large as what is in them.

const WIDTH = 172, GAP_X = 28, GAP_Y = 40, LANE = 22, PAD = 14, HEAD = 24, CUT = 30;

class Columns {
  // Positions of columns: stretched where boxes are wide, narrow where there are only lines.
  constructor(columns, widths, last) {
    const ends = new Set([-0.5, last + 0.5]);
    for (const c of columns) ends.add(c - 0.5).add(c + 0.5);
    this.ends = Float64Array.from(ends).sort();
    const at = new Map(Array.from(this.ends, (end, i) => [end, i]));
    this.stretch = new Float64Array(this.ends.length - 1).fill(LANE);
    const widest = new Map();
    columns.forEach((c, i) => widest.set(c, Math.max(widest.get(c) || 0, widths[i])));
    for (const [c, width] of widest) {
      for (let i = at.get(c - 0.5); i < at.get(c + 0.5); i++) this.stretch[i] = Math.max(this.stretch[i], width + GAP_X);
    }
    this.starts = new Float64Array(this.ends.length);
    for (let i = 0; i < this.stretch.length; i++) {
      this.starts[i + 1] = this.starts[i] + this.stretch[i] * (this.ends[i + 1] - this.ends[i]);
    }
    this.width = Math.max(0, this.starts[this.starts.length - 1] - GAP_X);
  }

  at(column) {
    return (this.position(column - 0.5) + this.position(column + 0.5)) / 2 - GAP_X / 2;
  }

  position(x) {
    let low = 0, high = this.stretch.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.ends[middle] <= x) low = middle; else high = middle - 1;
    }
    return this.starts[low] + (x - this.ends[low]) * this.stretch[low];
  }
}

class Places {
  // The positions in one unfolded frame, relative to the corner of its content.
  constructor(graph, frame, inner) {
    this.graph = graph;
    this.frame = frame;
    const sizes = frame.items.map((item) => {
      const open = graph.isOpen(item) && inner.get(~item);
      return open ? [open.width + 2 * PAD, open.height + 2 * PAD + HEAD] : [WIDTH, graph.heightOf(item)];
    });
    this.columns = new Columns(frame.positions.map((position) => position[0]), sizes.map((size) => size[0]), frame.columns);
    const highest = new Float64Array(frame.rows);
    frame.positions.forEach(([, row], i) => { highest[row] = Math.max(highest[row], sizes[i][1]); });
    this.tops = [frame.entries.length ? GAP_Y : 0];
    for (const height of highest) this.tops.push(this.tops[this.tops.length - 1] + height + GAP_Y);
    this.width = this.columns.width;
    this.height = Math.max(0, this.tops[frame.rows] - (frame.exits.length ? 0 : GAP_Y));
    this.entries = new Map(frame.entries);
    this.exits = new Map(frame.exits);
    this.boxes = new Map();
    frame.items.forEach((item, i) => {
      const [column, row] = frame.positions[i];
      const [w, h] = sizes[i];
      const space = this.tops[row + 1] - GAP_Y - this.tops[row];
      this.boxes.set(item, { item, row, w, h, x: this.columns.at(column) - w / 2, y: this.tops[row] + (space - h) / 2 });
    });
  }

  // Adds boxes and lines of the frame, whose content begins at (x, y), and of the frames in it.
  put(placed, x, y, inner, depth) {
    for (const box of this.boxes.values()) {
      const open = this.graph.isOpen(box.item);
      const put = { item: box.item, x: x + box.x, y: y + box.y, w: box.w, h: box.h, open, depth, row: box.row, frame: this.frame.index };
      (open ? placed.frames : placed.boxes).push(put);
      placed.byItem.set(box.item, put);
      if (open) inner.get(~box.item).put(placed, put.x + PAD, put.y + PAD + HEAD, inner, depth + 1);
    }
    const outputs = new Map();
    for (const [source, , tensor] of this.frame.links) {
      if (!outputs.has(source)) outputs.set(source, new Set());
      outputs.get(source).add(tensor);
    }
    for (const link of this.frame.links) placed.lines.push(this.line(link, x, y, inner, outputs));
  }

  line(link, x, y, inner, outputs) {
    const [source, target, tensor, bends] = link;
    const [start, row] = this.end(source, tensor, inner, true);
    const [stop] = this.end(target, tensor, inner, false);
    const points = [x + start[0], y + start[1]];
    (bends || []).forEach((column, i) => {
      const passed = row + 1 + i, at = x + this.columns.at(column);
      points.push(at, y + this.tops[passed], at, y + this.tops[passed + 1] - GAP_Y);
    });
    points.push(x + stop[0], y + stop[1]);
    // What leaves an unfolded frame has its label where it leaves the layer in it.
    const labelled = source !== null && !this.graph.isOpen(source);
    const atEnd = bends === null || (labelled && outputs.get(source).size > 1);
    let low = points[1], high = points[1];
    for (let i = 3; i < points.length; i += 2) { low = Math.min(low, points[i]); high = Math.max(high, points[i]); }
    return { points, tensor, source, target, low, high, straight: bends === null, label: labelled ? (atEnd ? "end" : "start") : "" };
  }

  end(item, tensor, inner, isSource) {
    if (item === null) {
      return isSource ? [[this.columns.at(this.entries.get(tensor)), -PAD - HEAD], -1]
        : [[this.columns.at(this.exits.get(tensor)), this.height + PAD], this.frame.rows];
    }
    const box = this.boxes.get(item);
    let x = box.x + box.w / 2;
    if (this.graph.isOpen(item)) {
      const positions = inner.get(~item);
      const ports = isSource ? positions.exits : positions.entries;
      if (ports.has(tensor)) x = box.x + PAD + positions.columns.at(ports.get(tensor));
    }
    return [[x, isSource ? box.y + box.h : box.y], box.row];
  }
}

// Everything that is unfolded, in pixels.
function place(graph) {
  const inner = new Map();
  for (let i = graph.frames.length - 1; i >= 0; i--) {
    if (i === 0 || graph.isUnfolded(i)) inner.set(i, new Places(graph, graph.frames[i], inner));
  }
  const placed = { boxes: [], frames: [], lines: [], byItem: new Map() };
  const margin = graph.isCut ? CUT : PAD;
  inner.get(0).put(placed, margin, margin, inner, 0);
  placed.width = inner.get(0).width + 2 * margin;
  placed.height = inner.get(0).height + 2 * margin;
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
