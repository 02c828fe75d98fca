// The memory view: bytes of storages over the time that the timeline shows, stacked by category.

const MEMORY_HEIGHT = 150;

class Memory {
  constructor(profile, view, theme) {
    Object.assign(this, { profile, view, theme });
    const { memoryGap, memoryBytes, memoryFreed, memoryCategory } = profile.columns;
    this.count = memoryGap.length;
    if (!this.count) return;
    this.card = document.getElementById("memory-card");
    this.canvas = document.getElementById("memory");
    this.card.hidden = false;
    // Without marked categories there is one line for all storages.
    const used = new Set(profile.marked ? memoryCategory : [0]);
    this.categories = [...used].sort((a, b) => this.rank(a) - this.rank(b));
    this.time = new Float64Array(this.count);
    this.total = new Float64Array(this.count);
    this.held = this.categories.map(() => new Float64Array(this.count));
    this.cumulate(memoryGap, memoryBytes, memoryFreed, memoryCategory);
    this.peak = this.total.reduce((most, bytes) => Math.max(most, bytes), 0);
    this.peakIndex = this.total.indexOf(this.peak);
    this.reserved = profile.reserved;
    // If much more is reserved than storages ever use, only the legend shows it.
    this.mostReserved = Math.max(0, ...this.reserved.map(([, bytes]) => bytes));
    this.showsReserved = this.mostReserved > 0 && this.mostReserved <= 3 * this.peak;
    this.showLegend(this.peakIndex, "at the peak");
    view.listeners.push(() => this.request());
    new ResizeObserver(() => this.request()).observe(this.card);
    this.canvas.addEventListener("pointermove", (pointer) => this.point(pointer.offsetX));
    this.canvas.addEventListener("pointerleave", () => this.point(null));
  }

  // Categories that live long are at the bottom of the stack.
  rank(category) {
    const order = ["parameter", "gradient", "optimizer state", "input", "other", "activation"];
    const place = order.indexOf(this.profile.categories[category]);
    return place < 0 ? order.length : place;
  }

  cumulate(gaps, bytes, freed, categories) {
    const places = new Map(this.categories.map((category, place) => [category, place]));
    const now = new Float64Array(this.categories.length);
    let time = 0;
    let total = 0;
    for (let i = 0; i < this.count; i++) {
      time += gaps[i];
      const change = freed[i] ? -bytes[i] : bytes[i];
      total += change;
      now[places.get(this.profile.marked ? categories[i] : 0)] += change;
      this.time[i] = time;
      this.total[i] = total;
      for (let place = 0; place < now.length; place++) this.held[place][i] = now[place];
    }
  }

  name(category) {
    return this.profile.marked ? this.profile.categories[category] : "all storages";
  }

  colour(category) {
    return this.theme.memory(this.profile.marked ? this.profile.categories[category] : "parameter");
  }

  showLegend(index, when) {
    const bytes = (place) => (index < 0 ? 0 : this.held[place][index]);
    const entries = this.categories.map((category, place) => element("li", {},
      element("i", { style: `background: ${this.colour(category)}` }), `${this.name(category)} `,
      element("b", {}, size(bytes(place)))));
    entries.reverse();
    const sum = element("b", {}, size(index < 0 ? 0 : this.total[index]));
    entries.push(element("li", {}, `together ${when} `, sum));
    if (this.reserved.length) {
      const most = element("b", {}, size(this.mostReserved));
      entries.push(element("li", {}, "reserved from the system ", most));
    }
    document.getElementById("legend").replaceChildren(...entries);
  }

  request() {
    this.frame ??= requestAnimationFrame(() => { this.frame = null; this.draw(); });
  }

  // For each pixel the index with the most bytes, or the last index before the pixel.
  indices(width) {
    const found = new Int32Array(width);
    const scale = (this.view.to - this.view.from) / width;
    const behind = (time) => firstIndex(0, this.count, (i) => this.time[i] > time);
    let next = behind(this.view.from);
    for (let pixel = 0; pixel < width; pixel++) {
      const until = this.view.from + (pixel + 1) * scale;
      let most = next - 1;
      for (; next < this.count && this.time[next] <= until; next++) {
        if (most < 0 || this.total[next] > this.total[most]) most = next;
      }
      found[pixel] = most;
    }
    return found;
  }

  draw() {
    const style = getComputedStyle(this.card);
    const padding = parseFloat(style.paddingLeft) + parseFloat(style.paddingRight);
    const width = Math.max(1, Math.floor(this.card.clientWidth - padding));
    const context = sized(this.canvas, width, MEMORY_HEIGHT);
    const most = Math.max(this.peak, this.showsReserved ? this.mostReserved : 0) || 1;
    const y = (bytes) => MEMORY_HEIGHT - 1 - (bytes / most) * (MEMORY_HEIGHT - 18);
    const indices = this.indices(width);
    const below = new Float64Array(width);
    for (const [place, category] of this.categories.entries()) {
      context.fillStyle = this.colour(category);
      context.beginPath();
      for (let pixel = width - 1; pixel >= 0; pixel--) context.lineTo(pixel + 0.5, y(below[pixel]));
      for (let pixel = 0; pixel < width; pixel++) {
        if (indices[pixel] >= 0) below[pixel] += this.held[place][indices[pixel]];
        context.lineTo(pixel + 0.5, y(below[pixel]));
      }
      context.fill();
    }
    this.drawReserved(context, width, y);
    this.drawScale(context, width, most, y);
    if (this.pointed !== undefined && this.pointed !== null) {
      context.fillStyle = this.theme.text;
      context.fillRect(this.pointed, 0, 1, MEMORY_HEIGHT);
    }
  }

  drawReserved(context, width, y) {
    if (!this.showsReserved) return;
    const scale = width / (this.view.to - this.view.from);
    context.strokeStyle = this.theme.muted;
    context.lineWidth = 1.5;
    context.setLineDash([5, 4]);
    context.beginPath();
    for (const [i, [time, bytes]] of this.reserved.entries()) {
      const until = this.reserved[i + 1]?.[0] ?? this.view.length;
      const clamp = (t) => Math.max(-10, Math.min((t - this.view.from) * scale, width + 10));
      context.lineTo(clamp(time), y(bytes));
      context.lineTo(clamp(until), y(bytes));
    }
    context.stroke();
    context.setLineDash([]);
  }

  drawScale(context, width, most, y) {
    context.font = FONT;
    context.textAlign = "left";
    context.textBaseline = "bottom";
    for (const share of [0.5, 1]) {
      context.fillStyle = this.theme.line;
      context.fillRect(0, Math.round(y(most * share)), width, 1);
      context.fillStyle = this.theme.text;
      context.fillText(size(most * share), 2, y(most * share) - 1);
    }
  }

  point(x) {
    this.pointed = x;
    if (x === null) this.showLegend(this.peakIndex, "at the peak");
    else {
      const width = this.canvas.clientWidth;
      const time = this.view.from + (x / width) * (this.view.to - this.view.from);
      this.showLegend(firstIndex(0, this.count, (i) => this.time[i] > time) - 1, "here");
    }
    this.request();
  }
}
