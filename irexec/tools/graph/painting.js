// Drawing what is placed on a canvas: with all details where these can be read, and as few calls as possible where not.

const FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif';
const READABLE = 0.42, VISIBLE = 0.16;
const LIGHT = { ground: "#f7f8fa", frames: ["#eef1f4", "#f9fafb"], frame: "#a9b3bd", text: "#15191e", quiet: "#4c5661", line: "#7c8792",
  far: "#c3cad1", block: "#ffffff", blockLine: "#6b7683", accent: "#d9480f", near: "#1f63b5", heat: "#d5482f", error: "#c62828", warning: "#b26a00", info: "#1f6fc0" };
const DARK = { ground: "#14171b", frames: ["#1d2227", "#171b1f"], frame: "#4d5863", text: "#eef1f4", quiet: "#b3bdc7", line: "#7f8a95",
  far: "#3f4850", block: "#262c32", blockLine: "#8793a0", accent: "#ff9a5c", near: "#86b6f2", heat: "#ff7a5c", error: "#ff6b60", warning: "#e3b341", info: "#86b6f2" };

// A text with an ellipsis where it is wider than `space`: of a path its end, of another name both ends.
function fitted(context, text, space) {
  if (context.measureText(text).width <= space) return text;
  const part = text.includes("/") ? 0 : 3;
  const shortened = (n) => { const head = part ? Math.floor(n / part) : 0; return `${text.slice(0, head)}…${text.slice(text.length - n + head)}`; };
  let low = 0, high = Math.min(text.length, 200);
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (context.measureText(shortened(middle)).width <= space) low = middle; else high = middle - 1;
  }
  return shortened(low);
}

// As many of the texts, between commas, as fit.
function listed(context, texts, space) {
  for (let n = texts.length; n > 1; n--) {
    const text = texts.slice(0, n).join(", ") + (n < texts.length ? ", …" : "");
    if (context.measureText(text).width <= space) return text;
  }
  return fitted(context, texts[0] || "", space);
}

class Painter {
  constructor(graph) {
    this.graph = graph;
    this.texts = new Map();
  }

  // Draws the part of `placed` that begins at (left, top) and has width x height of its pixels, `scale` times as large.
  paint(context, placed, view, selected, isDark) {
    const colours = isDark ? DARK : LIGHT;
    const { scale, left, top, width, height } = view;
    context.fillStyle = view.ground || colours.ground;
    context.fillRect(0, 0, width * scale, height * scale);
    context.save();
    context.scale(scale, scale);
    context.translate(-left, -top);
    const seen = this.seen(placed, view);
    const onScreen = (box) => box.x < left + width + 9 && box.x + box.w > left - 9 && box.y < top + height + 9 && box.y + box.h > top - 9;
    const frames = placed.frames.filter(onScreen);
    for (const frame of frames) this.frame(context, frame, colours, frame.item === selected);
    this.lines(context, seen.lines, colours, scale, selected);
    const boxes = seen.boxes.filter(onScreen);
    if (scale < VISIBLE) this.blots(context, boxes, colours, isDark, selected);
    else for (const box of boxes) this.box(context, box, colours, isDark, scale >= READABLE, box.item === selected);
    if (scale >= READABLE) {
      this.labels(context, seen.lines, colours);
      const titles = [];
      for (const frame of frames.reverse()) this.title(context, frame, colours, view, titles);
      for (const box of boxes) this.cutEnds(context, box, colours);
    }
    context.restore();
  }

  seen(placed, { top, height }) {
    const first = Math.max(0, Math.floor(top / BAND)), last = Math.min(placed.bands.length - 1, Math.floor((top + height) / BAND));
    if (first === 0 && last === placed.bands.length - 1) return placed;
    const boxes = new Set(), lines = new Set();
    for (let k = first; k <= last; k++) {
      for (const i of placed.bands[k]?.boxes || []) boxes.add(i);
      for (const i of placed.bands[k]?.lines || []) lines.add(i);
    }
    return { boxes: Array.from(boxes, (i) => placed.boxes[i]), lines: Array.from(lines, (i) => placed.lines[i]) };
  }

  frame(context, frame, colours, isSelected) {
    context.beginPath();
    context.roundRect(frame.x, frame.y, frame.w, frame.h, 8);
    context.fillStyle = colours.frames[frame.depth % 2];
    context.fill();
    context.lineWidth = isSelected ? 3 : 1;
    context.strokeStyle = isSelected ? colours.accent : colours.frame;
    context.stroke();
  }

  // The title of a frame stays in sight as long as a part of the frame is, if that of an inner frame is not in its place.
  title(context, frame, colours, { left, top }, done) {
    const x = Math.min(Math.max(frame.x, left), frame.x + frame.w - 80) + 9, y = Math.min(Math.max(frame.y, top), frame.y + frame.h - HEAD) + 17;
    context.font = `600 11px ${FONT}`;
    const text = fitted(context, `▾ ${this.graph.frameTitle(~frame.item)}`, frame.w - 20);
    if (this.isFree(context, text, x, y, done)) this.written(context, text, x, y, colours.frames[frame.depth % 2], colours.quiet);
  }

  // Whether no text of `done` stands where this one is to be; it is one of them then.
  isFree(context, text, x, y, done) {
    const end = x + context.measureText(text).width;
    if (done.some(([left, row, right]) => left < end && x < right && Math.abs(row - y) < 11)) return false;
    return done.push([x, y, end]);
  }

  // A text that lines do not cross.
  written(context, text, x, y, ground, colour) {
    context.lineJoin = "round";
    context.lineWidth = 3;
    context.strokeStyle = ground;
    context.strokeText(text, x, y);
    context.fillStyle = colour;
    context.fillText(text, x, y);
  }

  // Lines in three passes, each one path: what is far, the rest, and what belongs to the selected box.
  lines(context, lines, colours, scale, selected) {
    const near = [], rest = [], far = [];
    for (const line of lines) {
      const isNear = selected !== null && (line.source === selected || line.target === selected);
      (isNear ? near : line.straight ? far : rest).push(line);
    }
    const width = Math.max(1, 0.5 / scale);
    this.strokes(context, far, colours.far, width, scale, true);
    this.strokes(context, rest, colours.line, width, scale, false);
    this.strokes(context, near, colours.near, width * 2, scale, false);
  }

  strokes(context, lines, colour, width, scale, isDashed) {
    if (!lines.length) return;
    context.strokeStyle = context.fillStyle = colour;
    context.lineWidth = width;
    context.setLineDash(isDashed && scale >= VISIBLE ? [5, 4] : []);
    context.beginPath();
    for (const { points } of lines) {
      let x = points[0], y = points[1];
      context.moveTo(x, y);
      for (let i = 2; i < points.length; i += 2) {
        const nextX = points[i], nextY = points[i + 1], middle = (y + nextY) / 2;
        if (scale < VISIBLE || Math.abs(nextX - x) < 0.05) context.lineTo(nextX, nextY);
        else context.bezierCurveTo(x, middle, nextX, middle, nextX, nextY);
        x = nextX; y = nextY;
      }
    }
    context.stroke();
    context.setLineDash([]);
    if (scale < VISIBLE) return;
    context.beginPath();
    for (const { points } of lines) {
      const x = points[points.length - 2], y = points[points.length - 1];
      context.moveTo(x - 3.5, y - 6); context.lineTo(x + 3.5, y - 6); context.lineTo(x, y);
    }
    context.fill();
  }

  // Boxes of a few pixels: one fill for each colour.
  blots(context, boxes, colours, isDark, selected) {
    const byColour = new Map();
    for (const box of boxes) {
      const [, stroke] = this.graph.coloursOf(box.item, isDark) || [colours.block, colours.blockLine];
      if (!byColour.has(stroke)) byColour.set(stroke, []);
      byColour.get(stroke).push(box);
    }
    for (const [colour, some] of byColour) {
      context.fillStyle = colour;
      for (const box of some) context.fillRect(box.x, box.y, box.w, box.h);
    }
    for (const box of boxes) {
      const severity = this.graph.severityOf(box.item);
      if (box.item !== selected && !severity) continue;
      context.fillStyle = box.item === selected ? colours.accent : colours[severity];
      context.fillRect(box.x - 8, box.y - 8, box.w + 16, box.h + 16);
    }
  }

  box(context, box, colours, isDark, isReadable, isSelected) {
    const [fill, stroke] = this.graph.coloursOf(box.item, isDark) || [colours.block, colours.blockLine];
    context.globalAlpha = box.item < 0 && this.graph.frames[~box.item].dimmed && !isSelected ? 0.6 : 1;
    context.lineWidth = isSelected ? 3 : 1;
    context.strokeStyle = isSelected ? colours.accent : stroke;
    context.fillStyle = fill;
    if (box.item < 0) {
      // Two edges below the box: there is more than one layer in it.
      context.beginPath(); context.roundRect(box.x + 3, box.y + 3, box.w, box.h, 5); context.fill(); context.stroke();
    }
    context.beginPath(); context.roundRect(box.x, box.y, box.w, box.h, 5); context.fill(); context.stroke();
    const share = this.graph.shareOf(box.item);
    if (share) {
      context.fillStyle = colours.heat;
      context.fillRect(box.x + 1, box.y + box.h - 4, Math.max(1, (box.w - 2) * share), 3);
    }
    const severity = this.graph.severityOf(box.item);
    if (severity) this.mark(context, box.x + box.w - 10, box.y + 10, colours[severity], severity === "info" ? "i" : "!", isDark);
    if (isReadable) this.write(context, box, colours, severity);
    context.globalAlpha = 1;
  }

  mark(context, x, y, colour, sign, isDark) {
    context.fillStyle = colour;
    context.beginPath(); context.arc(x, y, 6.5, 0, 7); context.fill();
    context.fillStyle = isDark ? "#000" : "#fff";
    context.font = `700 10px ${FONT}`;
    context.textAlign = "center"; context.fillText(sign, x, y + 3.5); context.textAlign = "left";
  }

  write(context, box, colours, severity) {
    let texts = this.texts.get(box.item);
    if (!texts) {
      const { title, lines, badge } = this.graph.textsOf(box.item);
      const space = box.w - 16;
      context.font = `10px ${FONT}`;
      const taken = badge ? context.measureText(badge).width + 6 : 0;
      texts = { badge, lines: lines.map((line) => (Array.isArray(line) ? listed(context, line, space) : fitted(context, line, space))), title: "" };
      context.font = `600 12px ${FONT}`;
      texts.title = fitted(context, title, space - taken - (severity ? 12 : 0));
      this.texts.set(box.item, texts);
    }
    context.font = `600 12px ${FONT}`;
    context.fillStyle = colours.text;
    context.fillText(texts.title, box.x + 8, box.y + 14.5);
    context.font = `10px ${FONT}`;
    if (texts.badge) {
      context.fillStyle = colours.heat;
      context.textAlign = "right";
      context.fillText(texts.badge, box.x + box.w - 8 - (severity ? 12 : 0), box.y + 14);
      context.textAlign = "left";
    }
    texts.lines.forEach((line, i) => {
      context.fillStyle = i ? colours.quiet : colours.text;
      context.fillText(line, box.x + 8, box.y + 28 + 13 * i);
    });
  }

  // Short dashed lines where edges lead to layers that are not drawn, with the name of the first.
  cutEnds(context, box, colours) {
    const layer = this.graph.layerOf(box.item);
    if (!layer || !(layer.b.length || layer.z.length)) return;
    for (const [names, y, step] of [[layer.b, box.y, -14], [layer.z, box.y + box.h, 14]]) {
      if (!names.length) continue;
      const more = names.length > 1 ? ` and ${names.length - 1} more` : "", x = box.x + 14;
      context.font = `9.5px ${FONT}`;
      context.strokeStyle = colours.line;
      context.lineWidth = 1;
      context.setLineDash([3, 3]);
      context.beginPath(); context.moveTo(x, y); context.lineTo(x, y + step); context.stroke();
      context.setLineDash([]);
      context.fillStyle = colours.quiet;
      context.fillText(fitted(context, names[0], box.w - 40 - context.measureText(more).width) + more, x + 4, y + step + (step < 0 ? 6 : 0));
    }
  }

  // Type and shape of each tensor, where no other one is written.
  labels(context, lines, colours) {
    context.font = `9.5px ${FONT}`;
    const done = [];
    for (const line of lines) {
      if (!line.label) continue;
      const atEnd = line.label === "end", n = line.points.length;
      const x = (atEnd ? line.points[n - 2] : line.points[0]) + 5, y = atEnd ? line.points[n - 1] - 8 : line.points[1] + 12;
      const text = this.graph.tensorText(line.tensor);
      if (this.isFree(context, text, x, y, done)) this.written(context, text, x, y, colours.ground, colours.quiet);
    }
  }
}
