// The SQL editor: statements, their results or what is wrong with them, and what was run before.

import { drawn } from "./plan.js";
import { post } from "./server.js";
import { count, duration, el, table } from "./view.js";

const at = (id) => document.getElementById(id);
const PAST_MAX = 100;
const past = [];
let position = 0;
let running = null;

export function start() {
  at("run").addEventListener("click", () => run("/query", {}));
  at("plan").addEventListener("click", () => run("/explain", {}));
  at("analyze").addEventListener("click", () => run("/explain", { analyze: true }));
  at("stop").addEventListener("click", stop);
  at("text").addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) run("/query", {});
    else if (event.key === "Escape" && running) stop();
    else if (event.altKey && event.key === "ArrowUp") recall(-1);
    else if (event.altKey && event.key === "ArrowDown") recall(1);
    else return;
    event.preventDefault();
  });
}

// Another user may be next.
export function forget() {
  stop();
  past.length = position = 0;
  at("text").value = "";
  at("past").replaceChildren();
  at("results").replaceChildren();
}

// The end of the request is what cancels the statement.
function stop() {
  running?.abort();
}

// The selection, or all; and where it begins.
function chosen() {
  const { value, selectionStart, selectionEnd } = at("text");
  if (selectionStart === selectionEnd) return { sql: value, start: 0 };
  return { sql: value.slice(selectionStart, selectionEnd), start: selectionStart };
}

async function run(path, fields) {
  const { sql, start } = chosen();
  if (running || sql.trim() === "") return;
  remember(sql);
  running = new AbortController();
  const begun = performance.now();
  const tick = setInterval(() => say(`Running for ${duration((performance.now() - begun) / 1000)}…`), 250);
  busy(true);
  try {
    const answer = await post(path, { sql, ...fields }, running.signal);
    const shown = path === "/explain" ? [drawn(answer)] : answer.results.map(result);
    at("results").replaceChildren(...shown);
    say(`Done in ${duration(answer.seconds)}.`);
  } catch (error) {
    say("");
    at("results").replaceChildren(...(error.results ?? []).map(result), failure(error, sql, start));
  } finally {
    clearInterval(tick);
    running = null;
    busy(false);
  }
}

function busy(isBusy) {
  for (const id of ["run", "plan", "analyze"]) at(id).disabled = isBusy;
  at("stop").disabled = !isBusy;
  at("results").setAttribute("aria-busy", isBusy);
}

function say(text) {
  at("running").textContent = text;
}

function result({ tag, columns, rows, more, seconds, notice }) {
  const took = seconds === undefined ? "" : `, ${duration(seconds)}`;
  if (!columns) return el("div", { className: "result" }, el("p", {}, el("b", {}, tag), took, notice && ` – ${notice}`));
  const shown = more ? `the first ${count(rows.length)} rows; there are more` : `${count(rows.length)} ${rows.length === 1 ? "row" : "rows"}`;
  return el("div", { className: "result" }, el("p", {}, shown + took), table({ columns, rows }, "Result"));
}

function failure(error, sql, start) {
  if (error.name === "AbortError") return el("p", { className: "error", role: "alert" }, "Stopped: the statement is cancelled.");
  const told = error.error ?? { message: "The server does not answer. What was sent may have been done or not." };
  const parts = [el("b", {}, told.message), told.state && el("span", { className: "faint" }, ` (${told.state})`)];
  if (told.position) {
    const place = placeOf(sql, told.position);
    parts.push(el("pre", {}, `line ${place.line}: ${place.text}\n${" ".repeat(`line ${place.line}: `.length + place.column)}^`));
    point(start + place.offset);
  }
  if (told.detail) parts.push(el("div", {}, told.detail));
  if (told.hint) parts.push(el("div", {}, "Hint: " + told.hint));
  return el("div", { className: "error", role: "alert" }, parts);
}

// Line, column and offset of the character of that number, from 1. Some characters are two units of a string.
function placeOf(sql, number) {
  const offset = [...sql].slice(0, number - 1).join("").length;
  const before = sql.slice(0, offset).split("\n");
  const text = sql.split("\n")[before.length - 1] ?? "";
  return { offset, line: before.length, column: [...before[before.length - 1]].length, text };
}

// Puts the cursor there. A word that is selected would be all that runs next.
function point(offset) {
  at("text").focus();
  at("text").setSelectionRange(offset, offset);
}

function remember(sql) {
  if (past.at(-1) !== sql) past.push(sql);
  if (past.length > PAST_MAX) past.shift();
  position = past.length;
  const items = past.map((sql) => el("li", {}, el("button", { type: "button", onclick: () => put(sql) }, sql.trim())));
  at("past").replaceChildren(...items.reverse());
}

function recall(by) {
  const next = position + by;
  if (next < 0 || next > past.length) return;
  position = next;
  put(past[position] ?? "");
}

function put(sql) {
  at("text").value = sql;
  at("text").focus();
}
