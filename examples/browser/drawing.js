// A drawing area for mouse, pen, finger and keyboard, and the image of what was drawn.

const SIZE = 280, INK = 22, STEP = 8;

/** Draw into a canvas; `changed` is called after each stroke's part. */
export function drawInto(canvas, changed) {
  const ink = canvas.getContext("2d", {willReadFrequently: true});
  let last = null, pen = {x: SIZE / 2, y: 40}, isDown = false;

  const line = (from, to) => {
    ink.strokeStyle = "#fff";
    ink.lineWidth = INK;
    ink.lineCap = ink.lineJoin = "round";
    ink.beginPath();
    ink.moveTo(from.x, from.y);
    ink.lineTo(to.x, to.y);
    ink.stroke();
    changed();
  };
  const at = (event) => {
    const box = canvas.getBoundingClientRect();
    return {
      x: (event.clientX - box.left) * SIZE / box.width,
      y: (event.clientY - box.top) * SIZE / box.height,
    };
  };
  canvas.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    try {
      canvas.setPointerCapture(event.pointerId);
    } catch {}  // a pointer that a script made
    last = at(event);
    line(last, last);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!last) return;
    for (const each of event.getCoalescedEvents?.() ?? []) {
      const point = at(each);
      line(last, point);
      last = point;
    }
    const point = at(event);
    line(last, point);
    last = point;
  });
  for (const name of ["pointerup", "pointercancel"])
    canvas.addEventListener(name, () => { last = null; });
  canvas.addEventListener("keydown", (event) => {
    const moves = {ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1]};
    const move = moves[event.key];
    if (event.key === " ") {
      isDown = !isDown;
      if (isDown) line(pen, pen);
    } else if (move) {
      const within = (x) => Math.min(Math.max(x, INK), SIZE - INK);
      const next = {x: within(pen.x + STEP * move[0]), y: within(pen.y + STEP * move[1])};
      if (isDown) line(pen, next);
      pen = next;
    } else {
      return;
    }
    event.preventDefault();
  });
  return {
    clear() {
      ink.clearRect(0, 0, SIZE, SIZE);
      isDown = false;
      pen = {x: SIZE / 2, y: 40};
      changed();
    },
  };
}

/**
 * The image of a drawing as MNIST has them: scaled to fit 20x20 pixels, with its centre of mass in
 * the centre of 28x28. NULL for an empty drawing.
 * @returns {Float32Array|null} 784 numbers in [0, 1]
 */
export function imageOf(canvas) {
  const pixels = canvas.getContext("2d").getImageData(0, 0, SIZE, SIZE).data;
  let left = SIZE, right = -1, top = SIZE, bottom = -1;
  for (let y = 0; y < SIZE; y++) {
    for (let x = 0; x < SIZE; x++) {
      if (!pixels[4 * (y * SIZE + x) + 3]) continue;
      left = Math.min(left, x);
      right = Math.max(right, x);
      top = Math.min(top, y);
      bottom = Math.max(bottom, y);
    }
  }
  if (right < 0) return null;
  const width = right - left + 1, height = bottom - top + 1, scale = 20 / Math.max(width, height);
  const place = (dx, dy) => {
    const small = document.createElement("canvas");
    small.width = small.height = 28;
    const context = small.getContext("2d");
    context.imageSmoothingQuality = "high";
    context.drawImage(canvas, left, top, width, height, 14 - width * scale / 2 + dx,
                      14 - height * scale / 2 + dy, width * scale, height * scale);
    const data = context.getImageData(0, 0, 28, 28).data;
    return Float32Array.from({length: 784}, (_, i) => data[4 * i + 3] / 255);
  };
  const image = place(0, 0);
  let mass = 0, x = 0, y = 0;
  image.forEach((value, i) => {
    mass += value;
    x += value * (i % 28 + 0.5);
    y += value * (Math.floor(i / 28) + 0.5);
  });
  return mass ? place(Math.round(14 - x / mass), Math.round(14 - y / mass)) : image;
}

/** A small canvas that shows an image. */
export function thumbnail(image) {
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = 28;
  const data = new ImageData(28, 28);
  image.forEach((value, i) => data.data.set([255, 255, 255, 255 * value], 4 * i));
  canvas.getContext("2d").putImageData(data, 0, 0);
  return canvas;
}
