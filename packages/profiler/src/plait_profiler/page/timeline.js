// The timeline: a canvas that shows a part of the time, and events as boxes.

const RULER = 24;
const TRACK_HEADER = 20;
const LANE = 18;
const TRACK_GAP = 8;
const FONT = "12px system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', sans-serif";
const SHORTEST_VIEW = 20; // nanoseconds

// The part of the time that the timeline and the memory show.
class View {
  constructor(length) {
    this.length = Math.max(length, SHORTEST_VIEW);
    this.listeners = [];
    this.all();
  }

  all() { this.show(0, this.length); }

  show(from, to) {
    const span = Math.min(Math.max(to - from, SHORTEST_VIEW), this.length);
    const shift = (to - from - span) / 2;
    this.from = Math.min(Math.max(0, from + shift), this.length - span);
    this.to = this.from + span;
    this.listeners.forEach((listener) => listener());
  }

  // Zoom so that the time at `share` of the width stays where it is.
  zoom(factor, share = 0.5) {
    const span = Math.min((this.to - this.from) * factor, this.length);
    const from = this.from + (this.to - this.from - span) * share;
    this.show(from, from + span);
  }

  move(share) {
    const by = (this.to - this.from) * share;
    this.show(this.from + by, this.to + by);
  }

  reveal(from, to) {
    if (to - from > this.to - this.from || to - from < (this.to - this.from) / 400) {
      const span = Math.max((to - from) * 8, SHORTEST_VIEW);
      this.show((from + to - span) / 2, (from + to + span) / 2);
    } else if (from < this.from || to > this.to) {
      const span = this.to - this.from;
      this.show((from + to - span) / 2, (from + to + span) / 2);
    }
  }
}

// A canvas whose drawing units are CSS pixels.
function sized(canvas, width, height) {
  const ratio = window.devicePixelRatio || 1;
  const [wide, high] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== wide || canvas.height !== high) {
    canvas.width = wide;
    canvas.height = high;
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
  }
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  return context;
}

class Timeline {
  constructor(profile, view, theme, select) {
    Object.assign(this, { profile, view, theme, select });
    this.canvas = document.getElementById("timeline");
    this.scroller = document.getElementById("scroller");
    this.tip = document.getElementById("tip");
    this.hovered = this.selected = null;
    this.matched = null;
    this.layOut();
    this.paint();
    this.scroller.addEventListener("scroll", () => this.request());
    new ResizeObserver(() => this.request()).observe(this.scroller);
    view.listeners.push(() => this.request());
    this.listen();
  }

  // Where each track is, from the top.
  layOut() {
    let top = RULER + 4;
    for (const track of this.profile.tracks) {
      track.top = top;
      top += TRACK_HEADER + track.lanes.length * LANE + TRACK_GAP;
    }
    this.height = top;
  }

  // The colour of each signature.
  paint() {
    const { signatures, nameOfSignature, kinds } = this.profile;
    this.colours = signatures.map(({ kind }, i) => this.theme.event(nameOfSignature[i], kinds[kind]));
  }

  request() {
    this.frame ??= requestAnimationFrame(() => { this.frame = null; this.draw(); });
  }

  x(time) { return (time - this.view.from) * this.scale; }
  y(event) {
    return this.profile.track(event).top + TRACK_HEADER + this.profile.columns.depth[event] * LANE
      - this.scroller.scrollTop;
  }

  draw() {
    const limit = Math.min(window.innerHeight * 0.62, 900);
    this.width = this.scroller.clientWidth;
    this.shown = Math.min(this.height, Math.floor(limit));
    document.getElementById("space").style.height = `${this.height - this.shown}px`;
    this.scale = this.width / (this.view.to - this.view.from);
    const context = sized(this.canvas, this.width, this.shown);
    this.context = context;
    context.font = FONT;
    context.textBaseline = "middle";
    this.drawGrid();
    const process = new Set(this.profile.tracks.map((track) => track.process)).size > 1;
    for (const track of this.profile.tracks) this.drawTrack(track, process);
    for (const event of new Set([this.selected, this.hovered])) {
      if (event !== null) this.drawArrows(event);
    }
    this.drawRuler();
  }

  *ticks() {
    const step = roundStep((this.view.to - this.view.from) / Math.max(2, this.width / 110));
    for (let time = Math.ceil(this.view.from / step) * step; time <= this.view.to; time += step) {
      yield [this.x(time), axisTime(time, step)];
    }
  }

  drawGrid() {
    this.context.fillStyle = this.theme.line;
    for (const [x] of this.ticks()) this.context.fillRect(Math.round(x), RULER, 1, this.shown);
  }

  drawRuler() {
    const { context, theme } = this;
    context.globalAlpha = 1;
    context.fillStyle = theme.surface;
    context.fillRect(0, 0, this.width, RULER - 1);
    context.fillStyle = theme.muted;
    context.textAlign = "left";
    for (const [x, label] of this.ticks()) {
      if (x + context.measureText(label).width + 4 < this.width) context.fillText(label, x + 4, 9);
    }
    // which part of the whole is shown
    context.fillStyle = theme.line;
    context.fillRect(0, RULER - 5, this.width, 3);
    const all = this.width / this.view.length;
    context.fillStyle = theme.accent;
    const wide = Math.max(3, (this.view.to - this.view.from) * all);
    context.fillRect(Math.min(this.view.from * all, this.width - wide), RULER - 5, wide, 3);
  }

  drawTrack(track, withProcess) {
    const top = track.top - this.scroller.scrollTop;
    const { context } = this;
    if (top > this.shown || top + TRACK_HEADER + track.lanes.length * LANE < 0) return;
    for (const lane of track.lanes) {
      const y = top + TRACK_HEADER + lane.level * LANE;
      if (y + LANE < RULER || y > this.shown) continue;
      context.globalAlpha = this.matched ? 0.22 : 1;
      this.drawEvents(lane.events, y, !this.matched);
      if (this.matched) {
        context.globalAlpha = 1;
        this.drawEvents(lane.matched, y, true);
      }
    }
    context.globalAlpha = 1;
    context.fillStyle = this.theme.muted;
    context.textAlign = "left";
    const name = withProcess ? `${track.name} · process ${track.process}` : track.name;
    context.fillText(name, 2, top + TRACK_HEADER / 2, this.width - 4);
  }

  // The first of a lane's events that ends behind a time.
  firstEnding(events, time) {
    return firstIndex(0, events.length, (i) => this.profile.end(events[i]) > time);
  }

  // Of events that are shorter than a pixel and end within one pixel, the first is drawn.
  drawEvents(events, y, labelled) {
    const { profile: { start, duration: lengths, columns: { signature } }, context, view } = this;
    const count = events.length;
    for (let i = this.firstEnding(events, view.from); i < count;) {
      const event = events[i];
      if (start[event] > view.to) break;
      const x = Math.max(this.x(start[event]), -2);
      const right = Math.min(this.x(start[event] + lengths[event]), this.width + 2);
      context.fillStyle = this.colours[signature[event]];
      if (right - x < 1.5) {
        const pixel = Math.floor(x);
        context.fillRect(pixel, y, 1, LANE - 2);
        const next = view.from + (pixel + 1) / this.scale;
        i = firstIndex(i + 1, count, (at) => this.profile.end(events[at]) > next);
        continue;
      }
      context.fillRect(x, y, Math.max(1, right - x - 0.6), LANE - 2);
      if (labelled && right - x > 26) this.drawLabel(this.profile.name(event), x, right, y);
      i++;
    }
  }

  drawLabel(text, x, right, y) {
    const { context } = this;
    const from = Math.max(x, 0) + 5;
    const room = Math.min(right, this.width) - from - 4;
    const shown = fitted(context, text, room);
    if (!shown) return;
    context.fillStyle = this.theme.eventText;
    context.textAlign = "left";
    context.fillText(shown, from, y + (LANE - 2) / 2 + 0.5);
  }

  outline(event, width) {
    const { context, profile } = this;
    const x = Math.max(this.x(profile.start[event]), -4);
    const right = Math.min(this.x(profile.end(event)), this.width + 4);
    context.strokeStyle = this.theme.text;
    context.lineWidth = width;
    const wide = Math.max(2, right - x - 1);
    context.strokeRect(x + 0.5, this.y(event) + 0.5, wide, LANE - 3);
  }

  drawArrows(event) {
    const { context, profile } = this;
    context.globalAlpha = 1;
    context.save();
    context.beginPath();
    context.rect(0, RULER, this.width, this.shown);
    context.clip();
    this.outline(event, event === this.selected ? 2 : 1);
    for (const { from, to } of this.links(event)) {
      this.outline(event === from ? to : from, 1);
      const [x0, y0] = [this.x(profile.end(from)), this.y(from) + LANE / 2 - 1];
      const [x1, y1] = [this.x(profile.start[to]), this.y(to) + LANE / 2 - 1];
      const bend = Math.min(140, 24 + Math.abs(x1 - x0) / 3);
      context.strokeStyle = context.fillStyle = this.theme.accent;
      context.lineWidth = 1.5;
      context.beginPath();
      context.moveTo(x0, y0);
      context.bezierCurveTo(x0 + bend, y0, x1 - bend, y1, x1 - 5, y1);
      context.stroke();
      context.beginPath();
      context.moveTo(x1, y1);
      context.lineTo(x1 - 7, y1 - 4);
      context.lineTo(x1 - 7, y1 + 4);
      context.fill();
    }
    context.restore();
  }

  links(event) {
    if (this.linkedEvent !== event) {
      this.linkedEvent = event;
      this.linkedPairs = this.profile.linked(event);
    }
    return this.linkedPairs;
  }

  search(text) {
    this.matched = this.profile.matching(text);
    const { signature } = this.profile.columns;
    let found = 0;
    for (const lane of this.profile.tracks.flatMap((track) => track.lanes)) {
      lane.matched = this.matched && lane.events.filter((event) => this.matched[signature[event]]);
      found += lane.matched?.length ?? 0;
    }
    this.request();
    return found;
  }

  // The next match behind the selected event (direction 1) or before it (-1), by begin and number;
  // behind the last one comes the first.
  match(direction) {
    const { start } = this.profile;
    const order = (a, b) => direction * (start[a] - start[b] || a - b);
    const earliest = (best, event) => (best === null || order(event, best) < 0 ? event : best);
    let next = null;
    let first = null;
    for (const { matched } of this.profile.tracks.flatMap((track) => track.lanes)) {
      if (!matched?.length) continue;
      const inOrder = (i) => matched[direction > 0 ? i : matched.length - 1 - i];
      first = earliest(first, inOrder(0));
      if (this.selected === null) continue;
      const at = firstIndex(0, matched.length, (i) => order(inOrder(i), this.selected) > 0);
      if (at < matched.length) next = earliest(next, inOrder(at));
    }
    return next ?? first;
  }

  at(x, y) {
    if (y < RULER) return null;
    const time = this.view.from + x / this.scale;
    const inside = y + this.scroller.scrollTop;
    for (const track of this.profile.tracks) {
      const lane = track.lanes[Math.floor((inside - track.top - TRACK_HEADER) / LANE)];
      if (!lane || inside < track.top + TRACK_HEADER) continue;
      const slack = 2 / this.scale; // for events of less than a pixel
      const event = lane.events[this.firstEnding(lane.events, time - slack)];
      if (event !== undefined && this.profile.start[event] <= time + slack) return event;
    }
    return null;
  }

  reveal(event) {
    this.view.reveal(this.profile.start[event], this.profile.end(event));
    const y = this.y(event);
    if (y < RULER || y + LANE > this.shown) this.scroller.scrollTop += y - this.shown / 2;
    this.request();
  }

  listen() {
    const { canvas } = this;
    const pointers = new Map();
    let moved = 0;
    canvas.addEventListener("wheel", (wheel) => {
      wheel.preventDefault();
      const sideways = wheel.shiftKey ? wheel.deltaY || wheel.deltaX : wheel.deltaX;
      if (wheel.shiftKey || Math.abs(wheel.deltaX) > Math.abs(wheel.deltaY)) {
        this.view.move(sideways / this.width);
      } else {
        const lines = wheel.deltaMode === 1 ? 16 : 1;
        const by = Math.max(-200, Math.min(200, wheel.deltaY * lines));
        this.view.zoom(Math.exp(by / 400), wheel.offsetX / this.width);
      }
    }, { passive: false });
    canvas.addEventListener("pointerdown", (pointer) => {
      canvas.setPointerCapture(pointer.pointerId);
      pointers.set(pointer.pointerId, pointer);
      moved = 0;
    });
    canvas.addEventListener("pointermove", (pointer) => {
      const last = pointers.get(pointer.pointerId);
      if (!last) return this.hover(pointer);
      const [x, y] = [pointer.clientX - last.clientX, pointer.clientY - last.clientY];
      moved += Math.abs(x) + Math.abs(y);
      const other = [...pointers.values()].find((each) => each.pointerId !== pointer.pointerId);
      if (other) {
        const box = canvas.getBoundingClientRect();
        const [before, now] = [last, pointer].map((p) => Math.abs(p.clientX - other.clientX) + 20);
        this.view.zoom(before / now, (other.clientX - box.left) / this.width);
      } else if (moved > 3) {
        this.view.move(-x / this.width);
        if (pointer.pointerType === "mouse") this.scroller.scrollTop -= y;
      }
      pointers.set(pointer.pointerId, pointer);
    });
    const release = (pointer) => {
      if (pointers.delete(pointer.pointerId) && moved <= 3 && pointer.type === "pointerup") {
        this.select(this.at(pointer.offsetX, pointer.offsetY));
      }
    };
    canvas.addEventListener("pointerup", release);
    canvas.addEventListener("pointercancel", release);
    canvas.addEventListener("pointerleave", () => this.setHovered(null));
  }

  hover(pointer) {
    this.setHovered(pointer.pointerType === "touch" ? null : this.at(pointer.offsetX, pointer.offsetY));
    if (this.hovered === null) return;
    const facts = `${duration(this.profile.duration[this.hovered])} · ${this.profile.kind(this.hovered)}`;
    this.tip.replaceChildren(this.profile.name(this.hovered), element("small", {}, facts));
    this.tip.hidden = false;
    const { offsetWidth: wide, offsetHeight: high } = this.tip;
    const left = Math.max(8, Math.min(pointer.clientX + 14, window.innerWidth - wide - 8));
    const below = pointer.clientY + 18;
    const top = below + high > window.innerHeight ? pointer.clientY - high - 10 : below;
    this.tip.style.left = `${left}px`;
    this.tip.style.top = `${top}px`;
  }

  setHovered(event) {
    if (event === null) this.tip.hidden = true;
    if (event === this.hovered) return;
    this.hovered = event;
    this.canvas.style.cursor = event === null ? "default" : "pointer";
    this.request();
  }
}

// The beginning of a text that fits, or nothing if fewer than two letters fit.
function fitted(context, text, room) {
  if (context.measureText(text).width <= room) return text;
  const fits = firstIndex(1, text.length, (length) =>
    context.measureText(`${text.slice(0, length)}…`).width > room) - 1;
  return fits >= 2 ? `${text.slice(0, fits)}…` : "";
}
