// What runs, and what the shared scans do.

import { get, post } from "./server.js";
import { bytes, count, duration, el, objects, percent, replace, scrolling, table } from "./view.js";

const at = (id) => document.getElementById(id);

export async function refreshQueries() {
  const found = await get("/watch/activity");
  const head = [["Cancel", ""], ["Session", "number"], ["Role", ""], ["State", ""], ["Time", "number"], ["Waits for", ""],
    ["Read", "number"], ["Memory", "number"], ["Statement", ""]];
  const rows = objects(found.queries).map((query) => el("tr", {},
    el("td", {}, query.state === "running" && el("button", {
      type: "button", "data-key": `cancel-${query.session}`, onclick: () => cancel(query.session),
      "aria-label": `Cancel the statement of session ${query.session}`,
    }, "Cancel")),
    el("td", { className: "number" }, query.session), el("td", {}, query.user),
    el("td", {}, query.error === null ? query.state : `${query.state} (${query.error})`),
    el("td", { className: "number" }, duration(query.seconds)), el("td", {}, query.waits_for),
    el("td", { className: "number", title: reads(query) }, progress(query)),
    el("td", { className: "number" }, bytes(query.memory_bytes)), el("td", { className: "code" }, query.statement)));
  replace(at("queries-list"), rows.length === 0
    ? el("p", { className: "card" }, "Nothing runs, and nothing that took long has run.")
    : scrolling("Queries", true, el("table", {},
      el("thead", {}, el("tr", {}, head.map(([name, className]) => el("th", { scope: "col", className }, name)))), el("tbody", {}, rows))));
  replace(at("sessions-list"), found.sessions.rows.length === 0
    ? el("p", { className: "card" }, "No client is connected.")
    : table(found.sessions, "Sessions"));
  replace(at("locks-list"), found.locks.rows.length === 0
    ? el("p", { className: "card" }, "Nothing is locked.")
    : table(found.locks, "Locks"));
}

// What a statement has read of its tables, of what there is to read.
function progress(query) {
  const read = Number(query.bytes_local) + Number(query.bytes_remote);
  const total = Number(query.bytes_total);
  if (total === 0) return "–";
  return query.state === "running" ? `${percent(Math.min(read / total, 1))} of ${bytes(total)}` : bytes(read);
}

const reads = (query) => `${bytes(query.bytes_local)} local, ${bytes(query.bytes_remote)} remote`;

async function cancel(session) {
  try {
    const { cancelled } = await post("/cancel", { session: Number(session) });
    at("cancelled").textContent = cancelled ? `Session ${session} is told to cancel its statement.` : `There is no session ${session} any more.`;
  } catch (error) {
    at("cancelled").textContent = error.message;
  }
  await refreshQueries();
}

export async function refreshScans() {
  const { scans } = await get("/watch/scans");
  const cards = objects(scans).map((scan) => el("article", { className: "card" },
    el("h3", {}, scan.table_name, scan.pool && ` (pool ${scan.pool})`),
    el("div", { className: "figures" }, [
      ["waiting", count(scan.waiting)], ["cycles", count(scan.cycles)], ["queries", count(scan.queries)],
      ["queries in a cycle", `${Number(scan.batch_mean).toFixed(1)}, at most ${count(scan.batch_max)}`],
      ["a cycle", milliseconds(scan.cycle_ms)],
      ["latency", `${milliseconds(scan.latency_p50_ms)} median, ${milliseconds(scan.latency_p99_ms)} p99`],
      ["read", `${count(scan.rows_read)} rows, ${bytes(scan.bytes_read)}`],
      ["found", `${count(scan.matches)} of ${count(scan.candidates)} candidates`],
      ["answered elsewhere", count(scan.answered_elsewhere)],
    ].map(([name, value]) => el("div", {}, `${name} `, el("b", {}, value))))));
  replace(at("scans-list"), cards.length === 0
    ? el("p", { className: "card" }, "No query has ridden a shared scan yet: prepared selections of one table that wait together do.")
    : [cards, el("details", {}, el("summary", {}, "All figures"), table(scans, "Shared scans"))]);
}

const milliseconds = (value) => (value === null ? "–" : duration(Number(value) / 1000));
