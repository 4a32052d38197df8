// The document of the page: layers, frames and what is written in their boxes.
//
// Keys of a layer: n name, t type, v version, p path of the body, i id, f family, l line, in [port, type and shape, from], out [port, type
// and shape, tensor names], a attributes, h the layer that it is drawn in, k constants drawn in it, r types and shapes of constants that it
// reads, s statistics, w findings, ms time, sh share, al computed along with, c [MACs, parameters, bytes], b and z names of layers before
// and after it that are not drawn, st its state in a comparison, bd a text at the right of its title. An item of a frame is a layer, or ~ of a frame's index.

const SEVERITIES = ["error", "warning", "info"];

class Graph {
  constructor(document) {
    Object.assign(this, document);
    this.layers.forEach((layer, i) => {
      layer.index = i;
      for (const key of ["in", "out", "a", "k", "w", "b", "z"]) layer[key] = layer[key] || [];
      for (const key of ["n", "t", "v", "p", "r"]) layer[key] = layer[key] || "";
    });
    this.frames.forEach((frame, i) => { frame.index = i; });
    // Whether it is a part of a model, whose boxes have ends of lines to the rest of it.
    this.isCut = this.layers.some((layer) => layer.b.length || layer.z.length);
    this.home = new Map();
    this.frameOf = new Map();
    for (const frame of this.frames) {
      for (const item of frame.items) this.home.set(item, frame.index);
      if (frame.layer !== null) this.frameOf.set(frame.layer, frame.index);
    }
    this.before = this.layers.map(() => []);
    this.after = this.layers.map(() => []);
    for (const [source, output, target, input] of this.edges) {
      this.after[source].push([output, target]);
      this.before[target].push([input, source]);
    }
    this.summaries = new Map();
    if (this.states.length) this.shade(this.states, (layer) => layer.st ?? this.states.length - 1);
  }

  // Colours of boxes in place of those of families: rows [title, colours], and the index of a layer's row. A box has the first row of its layers.
  shade(rows, of) {
    this.shades = { rows, of, known: new Map() };
  }

  shadeOf(item) {
    const { rows, of, known } = this.shades;
    if (!known.has(item)) {
      const layers = item < 0 ? this.inside(this.frames[~item]) : [];
      if (this.layerOf(item)) layers.push(this.layerOf(item));
      known.set(item, layers.reduce((best, layer) => Math.min(best, of(layer), ...layer.k.map((i) => of(this.layers[i]))), rows.length - 1));
    }
    return known.get(item);
  }

  // Titles and colours that are in use.
  legend() {
    const boxes = this.layers.filter((layer) => layer.h === undefined);
    const [rows, of] = this.shades ? [this.shades.rows, (layer) => this.shadeOf(layer.index)] : [this.families.map((row) => row.slice(1)), (layer) => layer.f];
    const used = new Set(boxes.map(of));
    return rows.filter((_, i) => used.has(i));
  }

  isUnfolded(index) {
    for (let frame = this.frames[index]; frame; frame = frame.parent === null ? null : this.frames[frame.parent]) {
      if (frame.folded) return false;
    }
    return true;
  }

  isOpen(item) {
    return item !== null && item < 0 && !this.frames[~item].folded;
  }

  // The item that stands for a layer when all frames are unfolded: its own box, that of the layer it is drawn in, or its frame.
  itemOf(layer) {
    const index = this.layers[layer].h ?? layer;
    return this.frameOf.has(index) ? ~this.frameOf.get(index) : index;
  }

  // Unfolds what an item is in; whether anything was folded.
  reveal(item) {
    let changed = false;
    for (let index = this.home.get(item); index !== undefined && index !== null; index = this.frames[index].parent) {
      changed = changed || this.frames[index].folded;
      this.frames[index].folded = false;
    }
    return changed;
  }

  layerOf(item) {
    const index = item >= 0 ? item : this.frames[~item].layer;
    return index === null ? null : this.layers[index];
  }

  inside(frame) {
    const found = [], waiting = [frame];
    while (waiting.length) {
      for (const item of waiting.pop().items) {
        const layer = this.layerOf(item);
        if (layer) found.push(layer);
        if (item < 0) waiting.push(this.frames[~item]);
      }
    }
    return found;
  }

  findingsOf(layer) {
    return layer.w.concat(...layer.k.map((i) => this.layers[i].w));
  }

  // What a frame has in it, counted once.
  summary(frame) {
    if (!this.summaries.has(frame.index)) {
      const layers = this.inside(frame), types = new Map();
      for (const layer of layers) types.set(layer.t, (types.get(layer.t) || 0) + 1);
      const times = layers.filter((layer) => layer.ms !== undefined);
      const found = new Set(layers.flatMap((layer) => this.findingsOf(layer).map(([severity]) => severity)));
      this.summaries.set(frame.index, {
        count: layers.length,
        types: [...types].sort((a, b) => b[1] - a[1]),
        ms: times.length ? times.reduce((sum, layer) => sum + layer.ms, 0) : undefined,
        share: times.length ? times.reduce((sum, layer) => sum + (layer.sh || 0), 0) : undefined,
        severity: SEVERITIES.find((severity) => found.has(severity)),
      });
    }
    return this.summaries.get(frame.index);
  }

  textsOf(item) {
    const layer = this.layerOf(item);
    if (layer && item >= 0) {
      return { title: layer.t, lines: [layer.n, ...(layer.r ? [layer.r] : [])], badge: layer.bd || time(layer.ms) };
    }
    const frame = this.frames[~item], summary = this.summary(frame);
    if (layer) return { title: layer.t, lines: [layer.n, `▸ ${count(summary.count, "layer")} inside`], badge: time(layer.ms) };
    const most = summary.types.slice(0, 3).map(([type, n]) => (n > 1 ? `${type} ×${n}` : type));
    return { title: frame.name, lines: [`▸ ${count(summary.count, "layer")}`, most], badge: time(summary.ms) };
  }

  frameTitle(index) {
    const frame = this.frames[index], layer = frame.layer === null ? null : this.layers[frame.layer];
    return layer ? `${layer.t} · ${layer.n}` : `${frame.name} · ${count(this.summary(frame).count, "layer")}`;
  }

  coloursOf(item, isDark) {
    if (this.shades) return this.shades.rows[this.shadeOf(item)].slice(isDark ? 3 : 1);
    const layer = this.layerOf(item);
    if (!layer) return null;
    const [, , fill, stroke, darkFill, darkStroke] = this.families[layer.f];
    return isDark ? [darkFill, darkStroke] : [fill, stroke];
  }

  shareOf(item) {
    const layer = this.layerOf(item);
    return layer ? layer.sh : this.summary(this.frames[~item]).share;
  }

  severityOf(item) {
    if (item < 0 && this.frames[~item].layer === null) return this.summary(this.frames[~item]).severity;
    const found = new Set(this.findingsOf(this.layerOf(item)).map(([severity]) => severity));
    return found.size ? SEVERITIES.find((severity) => found.has(severity)) : undefined;
  }

  tensorText(index) {
    const [layer, output] = this.tensors[index];
    return this.layers[layer].out[output]?.[1] || "";
  }

  // The layers that a text is part of, the best first, and how many there are.
  search(text, limit) {
    const words = text.toLowerCase().split(/\s+/).filter(Boolean), whole = text.trim().toLowerCase(), found = [];
    if (!words.length) return { found, total: 0 };
    this.index = this.index || this.layers.map((layer) => (
      `${layer.p}${layer.n}\n${layer.t}\n${layer.i}\n${layer.out.map(([, , names]) => names.join("\n")).join("\n")}`.toLowerCase()));
    this.index.forEach((line, i) => {
      if (!line.includes(whole) && !words.every((word) => line.includes(word))) return;
      const layer = this.layers[i], name = layer.n.toLowerCase();
      const exact = name === whole || String(layer.i) === whole || layer.out.some(([, , names]) => names.some((n) => n.toLowerCase() === whole));
      const rank = exact ? 0 : name.startsWith(whole) || layer.t.toLowerCase() === whole ? 1 : line.includes(whole) ? 2 : 3;
      found.push([rank + (layer.t === "Constant" || layer.t === "Const" ? 0.5 : 0), i]);
    });
    found.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
    return { found: found.slice(0, limit).map(([, i]) => this.layers[i]), total: found.length };
  }
}

function count(number, what) {
  return `${number.toLocaleString("en")} ${what}${number === 1 ? "" : "s"}`;
}

function time(ms) {
  return ms === undefined || ms === null ? "" : ms < 1000 ? `${Number(ms.toPrecision(3))} ms` : `${Number((ms / 1000).toPrecision(3))} s`;
}

function amount(number) {
  if (number === null) return "not known";
  for (const [size, unit] of [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]]) if (number >= size) return `${Number((number / size).toPrecision(3))} ${unit}`;
  return String(number);
}
