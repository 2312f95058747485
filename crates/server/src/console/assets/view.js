// What the sections are drawn with.

// An element: properties, then children (elements, texts, lists of them, or nothing).
export function el(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("--")) made.style.setProperty(name, value);
    else if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else made.setAttribute(name === "className" ? "class" : name, value === true ? "" : value);
  }
  made.append(...children.flat(Infinity).filter((child) => child !== undefined && child !== null && child !== false));
  return made;
}

// The same for a picture.
export function svg(tag, properties = {}, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(properties)) made.setAttribute(name, value);
  made.append(...children.flat(Infinity));
  return made;
}

// Puts children in place of what was there; what had the focus by its data-key has it again, and lists stay scrolled.
export function replace(target, ...children) {
  const key = target.contains(document.activeElement) ? document.activeElement.dataset.key : undefined;
  const scrolled = [...target.querySelectorAll(".scroll")].map((box) => [box.scrollLeft, box.scrollTop]);
  target.replaceChildren(...children.flat(Infinity).filter(Boolean));
  target.querySelectorAll(".scroll").forEach((box, at) => {
    if (scrolled[at]) [box.scrollLeft, box.scrollTop] = scrolled[at];
  });
  if (key !== undefined) target.querySelector(`[data-key="${CSS.escape(key)}"]`)?.focus({ preventScroll: true });
}

// Rows as objects, whose keys are the columns.
export function objects(result) {
  const names = result.columns.map((column) => column.name);
  return result.rows.map((row) => Object.fromEntries(row.map((value, at) => [names[at], value])));
}

// Rows of a result as a table that scrolls by itself.
export function table(result, caption, isHigh = true) {
  const head = result.columns.map((column) =>
    el("th", { scope: "col", className: column.is_number ? "number" : undefined }, column.name,
      column.type && el("small", {}, column.type)));
  const cell = (value, at) => {
    if (value === null) return el("td", { className: "null" }, "NULL");
    const isNumber = result.columns[at].is_number;
    return el("td", { className: isNumber ? "number" : "text", title: value.length > 60 ? value : undefined }, value);
  };
  const body = result.rows.map((row) => el("tr", {}, row.map(cell)));
  return scrolling(caption, isHigh, el("table", {}, el("thead", {}, el("tr", {}, head)), el("tbody", {}, body)));
}

// A box that scrolls, also by the keyboard.
export function scrolling(label, isHigh, ...children) {
  const className = isHigh ? "scroll high" : "scroll";
  return el("div", { className, tabindex: 0, role: "region", "aria-label": label }, children);
}

export function bytes(count) {
  let [value, unit] = [Number(count), 0];
  while (value >= 1024 && unit < 5) [value, unit] = [value / 1024, unit + 1];
  const digits = unit === 0 || value >= 100 ? 0 : 1;
  return `${value.toFixed(digits)} ${["B", "KiB", "MiB", "GiB", "TiB", "PiB"][unit]}`;
}

export function duration(seconds) {
  const value = Number(seconds);
  if (value < 1e-3) return `${(value * 1e6).toFixed(0)} µs`;
  if (value < 1) return `${(value * 1e3).toFixed(value < 0.1 ? 1 : 0)} ms`;
  if (value < 120) return `${value.toFixed(1)} s`;
  return `${Math.floor(value / 60)} min ${Math.round(value % 60)} s`;
}

export const count = (value) => Number(value).toLocaleString("en");

export const percent = (share) => `${Math.round(share * 100)} %`;

// Colours of nodes, which their numbers stand beside: told apart by people with any kind of colour vision.
const HOMES = ["#0072b2", "#b65200", "#007a59", "#a5467f", "#6b5b95", "#8a6d00", "#3b6fd4", "#5b6875"];

export const home = (node) => (node === null ? "#77838f" : HOMES[Number(node) % HOMES.length]);
