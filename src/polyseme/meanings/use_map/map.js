// A map of uses on a canvas: points to look at, point at, move, zoom and choose with a lasso.
// Used by the explorer's page and by the notebook's widget. It loads nothing and knows no network.
//
//   const map = new UseMap(canvas, {onPoint, onChoose});
//   map.setColours(["#999", "#36a", …]);                     // colour 0 is for points without one
//   map.setPlaces({x, y, colour, lit, marked});              // lit: numbers, or null for all
//
// Points are written into an image by hand: 50,000 small discs take a few milliseconds, with no
// graphics card, where as many calls of a canvas take a hundred.

const RADIUS = 3.2; // of a point, in CSS pixels
const NEAR = 12; // how far a pointer may be from what it points at
const CELLS = 64; // the grid in which points are looked up, each way
const LIT_ALPHA = 0.78, GREY_ALPHA = 0.22;

export class UseMap {
  constructor(canvas, {onPoint = () => {}, onChoose = () => {}} = {}) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d");
    this.onPoint = onPoint;
    this.onChoose = onChoose;
    this.colours = [[120, 120, 120]];
    this.isLassoing = false;
    this.setPlaces({x: [], y: [], colour: [], lit: null, marked: null});
    this.#listen();
    new ResizeObserver(() => this.draw()).observe(canvas);
  }

  /** Colours as CSS writes them: #rrggbb. */
  setColours(colours) {
    this.colours = colours.map(parseColour);
    this.draw();
  }

  /** Places, colours (numbers of `setColours`), and which points are lit. */
  setPlaces({x, y, colour, lit = null, marked = null}) {
    this.number = x.length;
    this.x = Float32Array.from(x);
    this.y = Float32Array.from(y);
    this.colour = Uint8Array.from(colour);
    this.order = shuffled(this.number); // in their own order, the last group would hide the others
    this.marked = marked;
    this.pointed = -1;
    this.#box();
    this.#makeGrid();
    this.setLit(lit);
    this.showAll();
  }

  /** Only these points keep their colour; null for all. */
  setLit(lit) {
    this.isLit = new Uint8Array(this.number).fill(lit === null ? 1 : 0);
    for (const index of lit ?? []) this.isLit[index] = 1;
    const [under, above] = [0, 1].map((value) => this.order.filter((index) => this.isLit[index] === value));
    this.numGrey = under.length;
    this.sequence = Uint32Array.from([...under, ...above]); // what is not lit lies below
    this.draw();
  }

  /** The whole map. */
  showAll() {
    this.zoom = 1;
    this.centre = [(this.left + this.right) / 2, (this.low + this.high) / 2];
    this.draw();
  }

  /** Larger or smaller about a place on the canvas; its middle, if none is given. */
  zoomBy(factor, at = null) {
    const [px, py] = at ?? [this.canvas.clientWidth / 2, this.canvas.clientHeight / 2];
    const [x, y] = this.#toMap(px, py);
    this.zoom = Math.min(60, Math.max(0.6, this.zoom * factor));
    const [nx, ny] = this.#toMap(px, py);
    this.centre = [this.centre[0] + x - nx, this.centre[1] + y - ny];
    this.draw();
  }

  /** Whether the pointer draws a lasso or moves the map. */
  setLasso(isLassoing) {
    this.isLassoing = isLassoing;
    this.canvas.classList.toggle("lassoing", isLassoing);
  }

  /** What a button does: its `data-map` is in, out, whole or lasso. */
  press(button) {
    const what = button.dataset.map;
    if (what === "in") this.zoomBy(1.5);
    if (what === "out") this.zoomBy(1 / 1.5);
    if (what === "whole") this.showAll();
    if (what !== "lasso") return;
    this.setLasso(!this.isLassoing);
    button.setAttribute("aria-pressed", String(this.isLassoing));
  }

  /** Point at a use by number, as if with the pointer; -1 for none. */
  pointAt(index) {
    if (index === this.pointed) return;
    this.pointed = index;
    this.draw();
    this.onPoint(index);
  }

  /** Numbers of the points within a polygon of canvas places. */
  within(polygon) {
    const corners = polygon.map(([px, py]) => this.#toMap(px, py));
    const xs = corners.map((corner) => corner[0]), ys = corners.map((corner) => corner[1]);
    const [minX, maxX] = [Math.min(...xs), Math.max(...xs)];
    const [minY, maxY] = [Math.min(...ys), Math.max(...ys)];
    const found = [];
    for (let index = 0; index < this.number; index++) {
      const x = this.x[index], y = this.y[index];
      if (x < minX || x > maxX || y < minY || y > maxY) continue;
      let isInside = false;
      for (let a = 0, b = xs.length - 1; a < xs.length; b = a++) {
        if (ys[a] > y !== ys[b] > y && x < ((xs[b] - xs[a]) * (y - ys[a])) / (ys[b] - ys[a]) + xs[a]) isInside = !isInside;
      }
      if (isInside) found.push(index);
    }
    return found;
  }

  /** Draw at the next frame, however often it is asked for until then. */
  draw() {
    if (this.isDue) return;
    this.isDue = true;
    requestAnimationFrame(() => {
      this.isDue = false;
      this.drawNow();
    });
  }

  drawNow() {
    const ratio = Math.min(2, window.devicePixelRatio || 1);
    const width = Math.round(this.canvas.clientWidth * ratio), height = Math.round(this.canvas.clientHeight * ratio);
    if (!width || !height) return;
    if (this.canvas.width !== width || this.canvas.height !== height) Object.assign(this.canvas, {width, height});
    const image = this.context.createImageData(width, height);
    const pixels = new Int32Array(image.data.buffer);
    const [red, green, blue] = paperBehind(this.canvas);
    pixels.fill((255 << 24) | (blue << 16) | (green << 8) | red);
    const radius = RADIUS * ratio * (this.number > 10000 ? 0.6 : 1) * Math.min(1.8, Math.sqrt(this.zoom));
    const stamp = makeStamp(radius, width);
    const {scale, dx, dy} = this.#transform(ratio);
    for (let number = 0; number < this.number; number++) {
      const index = this.sequence[number], isGrey = number < this.numGrey;
      const colour = isGrey ? this.colours[0] : this.colours[this.colour[index]] ?? this.colours[0];
      put(pixels, width, height, stamp, this.x[index] * scale + dx, this.y[index] * -scale + dy, colour, isGrey);
    }
    this.context.putImageData(image, 0, 0);
    if (this.marked !== null) this.#ring(this.marked, radius + 4 * ratio, ratio);
    if (this.pointed >= 0) this.#ring(this.pointed, radius + 2.5 * ratio, ratio);
    if (this.lasso) this.#drawLasso(ratio);
  }

  #ring(index, radius, ratio) {
    const {scale, dx, dy} = this.#transform(ratio);
    this.context.beginPath();
    this.context.arc(this.x[index] * scale + dx, this.y[index] * -scale + dy, radius, 0, 7);
    this.context.lineWidth = 2 * ratio;
    this.context.strokeStyle = getComputedStyle(this.canvas).color;
    this.context.stroke();
  }

  #drawLasso(ratio) {
    this.context.beginPath();
    for (const [px, py] of this.lasso) this.context.lineTo(px * ratio, py * ratio);
    this.context.closePath();
    this.context.lineWidth = 1.5 * ratio;
    this.context.strokeStyle = getComputedStyle(this.canvas).color;
    this.context.fillStyle = "rgba(127,127,127,.15)";
    this.context.fill();
    this.context.stroke();
  }

  #box() {
    [this.left, this.right, this.low, this.high] = [Infinity, -Infinity, Infinity, -Infinity];
    for (let index = 0; index < this.number; index++) {
      this.left = Math.min(this.left, this.x[index]);
      this.right = Math.max(this.right, this.x[index]);
      this.low = Math.min(this.low, this.y[index]);
      this.high = Math.max(this.high, this.y[index]);
    }
    if (!this.number) [this.left, this.right, this.low, this.high] = [0, 1, 0, 1];
    this.size = Math.max(this.right - this.left, this.high - this.low, 1e-9);
  }

  #makeGrid() {
    this.grid = new Map();
    for (let index = 0; index < this.number; index++) {
      const key = this.#cell(this.x[index], this.left) * 1e4 + this.#cell(this.y[index], this.low);
      if (!this.grid.has(key)) this.grid.set(key, []);
      this.grid.get(key).push(index);
    }
  }

  #cell(value, lowest) {
    return Math.floor(((value - lowest) / this.size) * CELLS);
  }

  #transform(ratio) {
    const width = this.canvas.clientWidth, height = this.canvas.clientHeight;
    const scale = ((Math.min(width, height) * 0.92) / this.size) * this.zoom * ratio;
    return {scale, dx: (width * ratio) / 2 - this.centre[0] * scale, dy: (height * ratio) / 2 + this.centre[1] * scale};
  }

  #toMap(px, py) {
    const {scale, dx, dy} = this.#transform(1);
    return [(px - dx) / scale, (dy - py) / scale];
  }

  /** The point nearest to a place on the canvas; -1, if none is near. */
  nearest(px, py) {
    const [x, y] = this.#toMap(px, py);
    const reach = NEAR / this.#transform(1).scale;
    const cells = Math.ceil((reach / this.size) * CELLS);
    const [column, row] = [this.#cell(x, this.left), this.#cell(y, this.low)];
    let best = -1, least = reach * reach;
    for (let i = column - cells; i <= column + cells; i++) {
      for (let j = row - cells; j <= row + cells; j++) {
        for (const index of this.grid.get(i * 1e4 + j) ?? []) {
          const distance = (this.x[index] - x) ** 2 + (this.y[index] - y) ** 2;
          if (distance < least) [best, least] = [index, distance];
        }
      }
    }
    return best;
  }

  #listen() {
    const at = (event) => {
      const box = this.canvas.getBoundingClientRect();
      return [event.clientX - box.left, event.clientY - box.top];
    };
    let from = null;
    this.canvas.addEventListener("pointerdown", (event) => {
      this.canvas.setPointerCapture(event.pointerId);
      from = at(event);
      if (this.isLassoing || event.shiftKey) this.lasso = [from];
    });
    this.canvas.addEventListener("pointermove", (event) => {
      const here = at(event);
      if (!from) return this.pointAt(this.nearest(...here));
      if (this.lasso) {
        const last = this.lasso[this.lasso.length - 1];
        if (Math.hypot(here[0] - last[0], here[1] - last[1]) >= 3) this.lasso.push(here);
      } else {
        const {scale} = this.#transform(1);
        this.centre = [this.centre[0] - (here[0] - from[0]) / scale, this.centre[1] + (here[1] - from[1]) / scale];
        from = here;
      }
      return this.draw();
    });
    const end = (event) => {
      const lasso = this.lasso;
      this.lasso = from = null;
      this.draw();
      if (lasso && event.type === "pointerup") {
        const chosen = lasso.length > 2 ? this.within(lasso) : [];
        if (chosen.length) this.onChoose(chosen);
      }
    };
    this.canvas.addEventListener("pointerup", end);
    this.canvas.addEventListener("pointercancel", end);
    this.canvas.addEventListener("pointerleave", () => from || this.pointAt(-1));
    this.canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      this.zoomBy(Math.exp(-event.deltaY / 300), at(event));
    }, {passive: false});
    this.canvas.addEventListener("keydown", (event) => this.#onKey(event));
  }

  #onKey(event) {
    const towards = {ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1]}[event.key];
    if (towards) this.pointAt(this.#next(...towards));
    else if (event.key === "+" || event.key === "=") this.zoomBy(1.4);
    else if (event.key === "-") this.zoomBy(1 / 1.4);
    else if (event.key === "0") this.showAll();
    else if (event.key === "Escape") this.pointAt(-1);
    else if (event.key === "Enter" && this.pointed >= 0) this.onChoose([this.pointed]);
    else return;
    event.preventDefault();
  }

  /** The nearest point in a direction from the one pointed at; at first, that nearest to the middle. */
  #next(dx, dy) {
    const begin = this.pointed;
    const [x, y] = begin < 0 ? this.centre : [this.x[begin], this.y[begin]];
    let best = begin, least = Infinity;
    for (let index = 0; index < this.number; index++) {
      const [ax, ay] = [this.x[index] - x, this.y[index] - y];
      const ahead = ax * dx + ay * dy;
      if (index === begin || (begin >= 0 && ahead <= 0)) continue;
      const cost = begin < 0 ? ax * ax + ay * ay : ahead + 3 * Math.abs(ax * dy - ay * dx);
      if (cost < least) [best, least] = [index, cost];
    }
    return best;
  }
}

/** A line as nodes to put in: the word in its colour, [red, green, blue], with what stands around it. */
export function lineParts({left, form, right, known}, colour) {
  const word = document.createElement("b"), small = document.createElement("small");
  word.textContent = form;
  word.style.color = `rgb(${colour})`;
  small.textContent = known;
  return [`${left} `, word, ` ${right} `, small];
}

function parseColour(text) {
  const number = parseInt(text.trim().replace("#", ""), 16);
  return [number >> 16, (number >> 8) & 255, number & 255];
}

/** Numbers from 0 in an order that looks like none and is the same every time. */
function shuffled(number) {
  const order = Uint32Array.from({length: number}, (_, index) => index);
  let state = 12345;
  for (let index = number - 1; index > 0; index--) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    const other = state % (index + 1);
    [order[index], order[other]] = [order[other], order[index]];
  }
  return order;
}

/** A disc: its pixels, each with how much of what lies below it hides, of 256. */
function makeStamp(radius, width) {
  const half = Math.ceil(radius), offsets = [], lit = [], grey = [];
  for (let row = -half; row <= half; row++) {
    for (let column = -half; column <= half; column++) {
      const covered = Math.max(0, Math.min(1, radius + 0.5 - Math.hypot(row, column)));
      if (covered < 0.05) continue;
      offsets.push(row * width + column);
      lit.push(Math.round(256 * LIT_ALPHA * covered));
      grey.push(Math.round(256 * GREY_ALPHA * covered));
    }
  }
  return {half, offsets: Int32Array.from(offsets), lit: Int32Array.from(lit), grey: Int32Array.from(grey)};
}

/** Lay a disc of a colour over an image: a number for each pixel, red in its lowest byte. */
function put(pixels, width, height, stamp, x, y, colour, isGrey) {
  const half = stamp.half, left = (x + 0.5) | 0, top = (y + 0.5) | 0;
  if (left < half || top < half || left + half >= width || top + half >= height) return;
  const offsets = stamp.offsets, hides = isGrey ? stamp.grey : stamp.lit, middle = top * width + left;
  const red = colour[0], green = colour[1], blue = colour[2];
  for (let part = 0; part < offsets.length; part++) {
    const place = middle + offsets[part], above = hides[part], below = pixels[place];
    const r = below & 255, g = (below >> 8) & 255, b = (below >> 16) & 255;
    pixels[place] = -16777216 | ((b + (((blue - b) * above) >> 8)) << 16) | ((g + (((green - g) * above) >> 8)) << 8) | (r + (((red - r) * above) >> 8));
  }
}

/** The colour behind an element: its own, or that of the first around it that has one. */
function paperBehind(element) {
  for (let at = element; at; at = at.parentElement) {
    const parts = getComputedStyle(at).backgroundColor.match(/[\d.]+/g)?.map(Number) ?? [];
    if (parts.length === 3 || parts[3] > 0) return parts.slice(0, 3);
  }
  return [255, 255, 255];
}
