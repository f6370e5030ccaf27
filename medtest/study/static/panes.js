// The frames: loading, zoom and shift of both at once, flicker, outline.

const SVG = "http://www.w3.org/2000/svg";
const LARGEST = 8;
const names = document.body.dataset.kind === "pairs" ? ["source", "followup"] : ["followup"];
const views = names.map((name) => document.getElementById(`view-${name}`));
const stage = document.getElementById("stage");
const level = document.getElementById("zoom-level");
const caption = document.getElementById("name-followup");

let zoom = 1;
let left = 0; // shift of the layer as a share of the view's size
let top = 0;
let outlined = false;
let swapped = false;
const kept = new Map(); // address → decoded image, for the item that comes next

function picture(address, label) {
  const found = kept.get(address) || new Image();
  if (!found.src) found.src = address;
  found.alt = label;
  found.draggable = false;
  return found;
}

function outline(points, width, height) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.setAttribute("aria-hidden", "true");
  svg.classList.add("outline");
  for (const contour of points || []) {
    const polygon = document.createElementNS(SVG, "polygon");
    polygon.setAttribute("points", contour.map((point) => point.join(",")).join(" "));
    svg.append(polygon);
  }
  return svg;
}

function face(item, name, which) {
  const group = document.createElement("div");
  group.className = "face";
  group.dataset.name = name;
  group.append(picture(item[which], which === "source" ? "Source frame" : "Frame to judge"));
  group.append(outline(item.outlines[which], item.width, item.height));
  return group;
}

// Resolves when every frame is decoded: an item is judged, and its time counted, from then on.
export async function show(item) {
  const own = item.source ? { source: ["source"], followup: ["followup", "source"] } : { followup: ["followup"] };
  const images = [];
  for (const [index, name] of names.entries()) {
    const layer = views[index].firstElementChild;
    const faces = own[name].map((which) => {
      if (name === "followup" && which === "source") kept.delete(item.source); // one element cannot stand in two places
      return face(item, which, which);
    });
    layer.replaceChildren(...faces);
    images.push(...layer.querySelectorAll("img"));
  }
  swapped = false;
  outlined = false; // on request: it may lead the eye
  reset();
  draw();
  try {
    await Promise.all(images.map((image) => image.decode()));
  } finally {
    kept.clear(); // a frame that could not be loaded stays broken: another try needs another element
  }
  for (const address of item.ahead) {
    const image = new Image();
    image.src = address;
    kept.set(address, image);
  }
}

function draw() {
  for (const view of views) {
    const layer = view.firstElementChild;
    layer.style.transform = `translate(${left * 100}%, ${top * 100}%) scale(${zoom})`;
    view.classList.toggle("zoomed", zoom > 1);
    for (const svg of layer.querySelectorAll(".outline")) svg.classList.toggle("off", !outlined);
  }
  const faces = document.querySelectorAll("#view-followup .face");
  if (faces.length === 2) {
    faces[0].classList.toggle("off", swapped);
    faces[1].classList.toggle("off", !swapped);
    for (const one of faces) {
      for (const svg of one.querySelectorAll(".outline")) svg.classList.toggle("off", !outlined || one.classList.contains("off"));
    }
    caption.textContent = swapped ? "Source" : "Follow-up";
    caption.classList.toggle("swapped", swapped);
    document.getElementById("flicker").setAttribute("aria-pressed", String(swapped));
    document.getElementById("outline").setAttribute("aria-pressed", String(outlined));
  }
  level.textContent = `${Math.round(zoom * 100)} %`;
}

function bound() {
  left = Math.min(0, Math.max(1 - zoom, left));
  top = Math.min(0, Math.max(1 - zoom, top));
}

export function reset() {
  zoom = 1;
  left = 0;
  top = 0;
  draw();
}

// x and y are the point that stays where it is, as shares of the view.
export function zoomBy(factor, x = 0.5, y = 0.5) {
  const next = Math.min(LARGEST, Math.max(1, zoom * factor));
  left = x - ((x - left) * next) / zoom;
  top = y - ((y - top) * next) / zoom;
  zoom = next;
  bound();
  draw();
}

export function shift(right, down) {
  left += right;
  top += down;
  bound();
  draw();
}

export function flicker(on) {
  if (swapped === on) return;
  swapped = on;
  draw();
}

export const isSwapped = () => swapped;

export function toggleOutline() {
  outlined = !outlined;
  draw();
}

export function toggleSingle() {
  const single = stage.classList.toggle("single");
  document.getElementById("single").setAttribute("aria-pressed", String(single));
  reset();
}

function watch(view) {
  const down = new Map();
  let apart = 0;
  let moved = false;
  const at = (event) => {
    const box = view.getBoundingClientRect();
    return [(event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height];
  };
  const spread = () => {
    const [a, b] = [...down.values()];
    return Math.hypot(a[0] - b[0], a[1] - b[1]);
  };
  view.addEventListener("wheel", (event) => {
    event.preventDefault();
    zoomBy(Math.exp(-event.deltaY * (event.ctrlKey ? 0.01 : 0.0016)), ...at(event));
  }, { passive: false });
  view.addEventListener("dblclick", (event) => (zoom > 1 ? reset() : zoomBy(2.5, ...at(event))));
  view.addEventListener("pointerdown", (event) => {
    down.set(event.pointerId, at(event));
    moved = false;
    if (zoom > 1 || down.size > 1) view.setPointerCapture(event.pointerId);
    if (down.size === 2) apart = spread();
  });
  view.addEventListener("pointermove", (event) => {
    const before = down.get(event.pointerId);
    if (!before) return;
    const here = at(event);
    down.set(event.pointerId, here);
    if (down.size === 2) {
      const wide = spread();
      const [a, b] = [...down.values()];
      if (apart > 0) zoomBy(wide / apart, (a[0] + b[0]) / 2, (a[1] + b[1]) / 2);
      apart = wide;
      moved = true;
    } else if (zoom > 1) {
      shift(here[0] - before[0], here[1] - before[1]);
      moved = true;
    }
  });
  const up = (event) => {
    const tapped = down.delete(event.pointerId) && !moved && event.type === "pointerup" && event.pointerType === "touch";
    if (tapped && stage.classList.contains("single") && down.size === 0) flicker(!swapped);
  };
  view.addEventListener("pointerup", up);
  view.addEventListener("pointercancel", up);
  // Two fingers zoom the frames, not the page.
  view.addEventListener("touchmove", (event) => {
    if (event.touches.length > 1) event.preventDefault();
  }, { passive: false });
}

views.forEach(watch);
