// The machine as it is now: a box for each node, an arrow for what its workers read from another node's memory.

import { bytes, home, percent, replace, svg } from "./view.js";

const [WIDTH, HEIGHT, GAP] = [214, 92, 14];

// What had been read at the last look.
let last;

// Bytes a second by reader and home, since the last look.
function rates(traffic) {
  const now = { at: performance.now(), read: new Map(traffic.map((row) => [`${row.reader} ${row.home}`, Number(row.bytes)])) };
  const seconds = last ? (now.at - last.at) / 1000 : 1;
  const rate = ([pair, read]) => [pair, Math.max(0, read - (last?.read.get(pair) ?? read)) / seconds];
  const all = new Map([...now.read].map(rate));
  last = now;
  return all;
}

// `nodes` are { node, load, used, all, tables }: shares of 1, and bytes.
export function draw(target, nodes, traffic) {
  const read = rates(traffic);
  const rate = (reader, from) => read.get(`${reader} ${from}`) ?? 0;
  const radius = nodes.length < 2 ? 0 : Math.max(225, nodes.length * 62);
  const size = [2 * radius + WIDTH + 2 * GAP, (nodes.length < 3 ? 0 : 2 * radius) + HEIGHT + 2 * GAP];
  const places = new Map(nodes.map(({ node }, at) => {
    const angle = Math.PI + 2 * Math.PI * at / nodes.length;
    return [node, [size[0] / 2 + radius * Math.cos(angle), size[1] / 2 + (nodes.length < 3 ? 0 : radius * Math.sin(angle))]];
  }));
  const most = Math.max(1, ...read.values());
  const arrows = nodes.flatMap((reader) => nodes.filter((from) => from !== reader && rate(reader.node, from.node) > 0)
    .map((from) => arrow(places, from.node, reader.node, rate(reader.node, from.node) / most, rate(reader.node, from.node))));
  const remote = [...read].filter(([pair]) => new Set(pair.split(" ")).size > 1).reduce((sum, [, bytes]) => sum + bytes, 0);
  replace(target, svg("svg", {
    viewBox: `0 0 ${size[0]} ${size[1]}`, width: size[0], role: "img",
    "aria-label": `${nodes.length} nodes; their workers read ${bytes(remote)} a second from other nodes`,
  }, arrows.map(([line]) => line), nodes.map((node) => box(node, places.get(node.node), rate(node.node, node.node))), arrows.map(([, label]) => label)));
}

function box({ node, load, used, all, tables }, [x, y], local) {
  const line = (at, text) => svg("text", { x: x - WIDTH / 2 + 10, y: y - HEIGHT / 2 + 20 + 18 * at, class: at ? "" : "name" }, text);
  const bar = (at, share, fill) => svg("rect", {
    x: x - WIDTH / 2, y: y + HEIGHT / 2 - 5 * at, width: WIDTH * Math.min(1, share), height: 5, fill,
  });
  return svg("g", { class: "node" },
    svg("rect", { x: x - WIDTH / 2, y: y - HEIGHT / 2, width: WIDTH, height: HEIGHT, rx: 6, class: "box" }),
    line(0, `Node ${node} · ${load === null ? "…" : percent(load)} busy`),
    line(1, used === null ? `Memory ${bytes(all)}` : `Memory ${bytes(used)} of ${bytes(all)}`),
    line(2, `Tables ${bytes(tables)}`),
    line(3, `Reads ${bytes(local)}/s here`),
    bar(1, load ?? 0, home(node)), bar(2, all > 0 ? (used ?? 0) / all : 0, "var(--faint)"));
}

// From the memory to its reader, on the right side of the way there.
function arrow(places, from, to, share, rate) {
  const [[x1, y1], [x2, y2]] = [places.get(from), places.get(to)];
  const length = Math.hypot(x2 - x1, y2 - y1);
  const [dx, dy] = [(y1 - y2) / length * 26, (x2 - x1) / length * 26];
  const [mx, my] = [(x1 + x2) / 2 + 2 * dx, (y1 + y2) / 2 + 2 * dy];
  const line = svg("path", {
    d: `M ${x1 + dx} ${y1 + dy} Q ${mx} ${my} ${x2 + dx} ${y2 + dy}`, class: "flow", stroke: home(from), "stroke-width": 1.5 + 6 * share,
  });
  // Nearer to where it comes from: ways that cross in the middle keep their figures apart.
  const at = (a, b, d) => a + 0.36 * (b - a) + 1.9 * d;
  const label = svg("text", { x: at(x1, x2, dx), y: at(y1, y2, dy) + 4, class: "rate", fill: home(from) }, `${from} → ${to} ${bytes(rate)}/s`);
  return [line, label];
}
