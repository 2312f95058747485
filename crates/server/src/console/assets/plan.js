// A plan as a tree of boxes: each operator with its rows, time, homes and bytes, above what it reads.

import { duration, el, scrolling } from "./view.js";

const UNITS = { "": 1, B: 1, K: 1e3, KB: 1e3, M: 1e6, MB: 1e6, G: 1e9, GB: 1e9, T: 1e12, TB: 1e12 };
const SECONDS = { ns: 1e-9, "µs": 1e-6, ms: 1e-3, s: 1 };

// Figures as the engine writes them: `31.65 K`, `1.2ms`. DataFusion's B of counts means 10⁹, which a scale can do without.
export function figure(text, units = UNITS) {
  const [, digits, unit] = /^([\d.]+)\s*([^\d\s]*)/.exec(text ?? "") ?? [];
  return digits === undefined ? 0 : Number(digits) * (units[unit] ?? 1);
}

export function drawn({ nodes, text, notes, seconds }) {
  const longest = Math.max(1e-9, ...nodes.map((node) => figure(node.metrics.elapsed_compute, SECONDS)));
  const root = { children: [] };
  const path = [root];
  for (const node of nodes) {
    const item = { node, children: [] };
    path.length = node.depth + 1;
    (path[node.depth] ?? root).children.push(item);
    path[node.depth + 1] = item;
  }
  const list = (items, className) =>
    items.length > 0 && el("ul", { className }, items.map((item) => el("li", {}, box(item.node, longest), list(item.children))));
  return el("div", { className: "result" },
    el("p", {}, `Planned${longest > 1e-9 ? " and run" : ""} in ${duration(seconds)}. Rows flow from the inner boxes to the outer ones.`),
    scrolling("The plan", false, list(root.children, "plan")),
    notes.map(([name, value]) => el("p", { className: "faint" }, `${name}: ${value}`)),
    el("details", {}, el("summary", {}, "As text"), scrolling("The plan as text", true, el("pre", {}, text))));
}

function box(node, longest) {
  const { output_rows: rows, elapsed_compute: time, bytes_local: local, bytes_remote: remote, ...others } = node.metrics;
  const share = figure(time, SECONDS) / longest;
  const facts = [
    rows !== undefined && el("span", {}, el("b", {}, rows), " rows"),
    time !== undefined && el("span", { title: "Summed over all partitions" }, el("b", {}, time)),
    node.homes && el("span", { title: `The node of each partition: ${node.homes}` }, "homes ", el("b", {}, homes(node.homes))),
    local !== undefined && el("span", {}, "local ", el("b", {}, local), "B, remote ", el("b", {}, remote ?? "0"), "B"),
  ];
  const all = figure(local) + figure(remote);
  const bar = all > 0 && el("div", { className: "bytes", role: "img", "aria-label": `${local} local, ${remote} remote bytes` },
    el("i", { "--share": figure(local) / all }), el("i", { className: "remote", "--share": figure(remote) / all }));
  const list = Object.entries(others).map(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]);
  const hasMore = node.details || node.reason || list.length > 0;
  return el("div", { className: "operator", "--share": share },
    el("div", { className: "row" }, el("b", {}, node.name), node.variant && el("span", { className: "badge", title: node.reason }, node.variant)),
    el("div", { className: "row" }, facts), bar,
    hasMore && el("details", {}, el("summary", {}, shorter(node.reason ?? node.details) || "Figures"),
      el("dl", {}, node.details && [el("dt", {}, "details"), el("dd", {}, node.details)],
        node.reason && [el("dt", {}, "reason"), el("dd", {}, node.reason)], list)));
}

const shorter = (text) => (text.length > 70 ? text.slice(0, 69) + "…" : text);

// `[0,0,1,1]` as `0 ×2, 1 ×2`.
function homes(text) {
  const counts = new Map();
  for (const node of text.replace(/[[\]\s]/g, "").split(",")) counts.set(node, (counts.get(node) ?? 0) + 1);
  return [...counts].map(([node, count]) => (count > 1 ? `${node} ×${count}` : node)).join(", ");
}
