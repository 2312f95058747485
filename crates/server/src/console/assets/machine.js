// The machine: its picture, and how busy its nodes are now.

import { draw } from "./live.js";
import { get } from "./server.js";
import { bytes, count, el, objects, percent, replace, table } from "./view.js";

const at = (id) => document.getElementById(id);

export async function refresh() {
  if (!at("picture").hasAttribute("src")) at("picture").src = "/console/machine.svg";
  const found = await get("/machine");
  const [database] = objects(found.database);
  const figures = [
    ["machine", found.name],
    ["statements", count(database.statements)],
    ["commits", count(database.commits)],
    ["durability", database.durability],
    ["directory", database.directory ?? "in memory"],
  ];
  replace(at("figures"), figures.map(([name, value]) => el("div", {}, `${name} `, el("b", {}, value))));
  const homes = new Map(objects(found.homes).map((row) => [row.node, Number(row.bytes)]));
  const load = new Map(found.load.map((row) => [row.node, row]));
  const nodes = objects(found.nodes);
  draw(at("live"), nodes.map((node) => now(node, load.get(Number(node.node)), homes.get(node.node) ?? 0)), objects(found.traffic));
  replace(at("nodes"), nodes.map((node) => card(node, load.get(Number(node.node)), homes.get(node.node) ?? 0)));
  replace(at("links"), found.links.rows.length > 0 && [el("h3", {}, "Links"), table(found.links, "Links between nodes")],
    found.pools.rows.length > 0 && [el("h3", {}, "Pools of workers"), table(found.pools, "Pools")]);
}

// The mean load of a node's cpus; null before the second look.
function mean(load) {
  const known = (load?.cpus ?? []).filter(([, share]) => share !== null);
  return known.length === 0 ? null : known.reduce((sum, [, share]) => sum + share, 0) / known.length;
}

const number = (text) => (text === null ? null : Number(text));

// What the live picture shows of a node.
function now(node, load, tables) {
  const [all, free] = [number(node.memory_bytes), number(node.memory_free_bytes)];
  return { node: node.node, load: mean(load), used: free === null ? null : all - free, all, tables };
}

function card(node, load, ofTables) {
  const busy = mean(load);
  const [all, free] = [number(node.memory_bytes), number(node.memory_free_bytes)];
  return el("article", { className: "card", "aria-label": `Node ${node.node}` },
    el("h3", {}, `Node ${node.node}`),
    pair("Load of its cpus", busy !== null ? percent(busy) : load?.cpus.length ? "…" : "no cpus"),
    el("div", { className: "cells" }, (load?.cpus ?? []).map(([cpu, share]) =>
      el("span", { className: "cpu", "--share": share ?? 0, title: `cpu ${cpu}: ${share === null ? "?" : percent(share)}` }, String(cpu)))),
    all > 0 && pair("Memory in use", free === null ? bytes(all) : `${bytes(all - free)} of ${bytes(all)}`),
    all > 0 && meter([[Math.min(ofTables, all) / all, ""], [Math.max(0, all - (free ?? all) - ofTables) / all, "more"]],
      `${bytes(ofTables)} by tables, of ${bytes(all)}`),
    pair("Tables", bytes(ofTables)),
    pair("Workers", node.worker_count),
    load?.traffic
      ? pair("Memory traffic", `${bytes(load.traffic.local_bytes_s)}/s local, ${bytes(load.traffic.bytes_s - load.traffic.local_bytes_s)}/s remote`)
      : pair("Memory traffic", "not counted on this machine"));
}

const pair = (name, value) => el("div", { className: "pair" }, el("span", {}, name), el("span", {}, value));

function meter(shares, label) {
  return el("div", { className: "meter", role: "img", "aria-label": label, title: label },
    shares.map(([share, className]) => el("i", { className, "--share": share })));
}
