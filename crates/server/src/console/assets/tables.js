// Tables, and the homes of their chunks as a map.

import { get } from "./server.js";
import { bytes, count, el, home, objects, percent, replace } from "./view.js";

export async function refresh() {
  const found = await get("/watch/tables");
  const [homes, chunks] = [grouped(objects(found.homes)), grouped(objects(found.chunks))];
  const cards = objects(found.tables).map((table) => card(table, homes.get(table.table) ?? [], chunks.get(table.table) ?? []));
  replace(document.getElementById("tables-list"),
    cards.length === 0 ? el("p", { className: "card" }, "There are no tables yet.") : cards);
}

function grouped(rows) {
  const groups = new Map();
  for (const row of rows) groups.set(row.table, [...(groups.get(row.table) ?? []), row]);
  return groups;
}

function card(table, homes, chunks) {
  const all = homes.reduce((sum, row) => sum + Number(row.bytes), 0);
  const named = (node) => (node === null ? "unknown node" : `node ${node}`);
  return el("article", { className: "card", "aria-label": `Table ${table.table}` },
    el("h3", {}, table.table),
    el("div", { className: "figures" }, [
      ["rows", count(table.rows)], ["in chunks", bytes(table.memory_bytes)], ["chunks", count(table.chunks)],
      ["rows beside them", count(table.delta_rows)], ["indexes", bytes(table.index_bytes)],
      ["placement", table.placement], table.sorted_by && ["sorted by", table.sorted_by],
    ].filter(Boolean).map(([name, value]) => el("div", {}, `${name} `, el("b", {}, value)))),
    all > 0 && el("div", { className: "homes", "aria-hidden": "true" }, homes.map((row) =>
      el("i", { "--share": Number(row.bytes) / all, "--home": home(row.node), title: `${named(row.node)}: ${bytes(row.bytes)}` }, row.node ?? "?"))),
    homes.length > 0 && el("ul", { className: "legend" }, homes.map((row) => el("li", {}, el("i", { "--home": home(row.node) }),
      `${named(row.node)}: ${count(row.chunks)} ${row.chunks === "1" ? "chunk" : "chunks"}, ${bytes(row.bytes)} (${percent(Number(row.bytes) / Math.max(1, all))})`))),
    chunks.length > 1 && el("div", { className: "cells", role: "img", "aria-label": "Chunks in their order, coloured by their nodes" }, chunks.map((row) =>
      el("span", { className: "chunk", "--home": home(row.node), title: `chunk ${row.chunk}: ${named(row.node)}, ${count(row.rows)} rows, ${bytes(row.bytes)}` }))));
}
