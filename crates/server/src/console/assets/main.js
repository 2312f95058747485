// The console: who is logged in, which section is shown, and whether the server is there.

import * as activity from "./activity.js";
import * as editor from "./editor.js";
import * as machine from "./machine.js";
import { get, on, post } from "./server.js";
import * as tables from "./tables.js";

const at = (id) => document.getElementById(id);
const SECTIONS = {
  sql: async () => {},
  queries: activity.refreshQueries,
  tables: tables.refresh,
  machine: machine.refresh,
  scans: activity.refreshScans,
};
const EVERY_MS = 2000;
const AGAIN_MS = 1000;
let user = null;
let timer;

const current = () => (location.hash.slice(1) in SECTIONS ? location.hash.slice(1) : "sql");

// Shows the section that the address names, or the log-in.
function show() {
  for (const id of Object.keys(SECTIONS)) at(id).hidden = user === null || id !== current();
  at("log-in").hidden = user !== null;
  at("sections").hidden = at("who").hidden = user === null;
  for (const link of at("sections").children) {
    if (link.hash === "#" + current()) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.title = user === null ? "Log in – Atoll" : `${at(current() + "-title").textContent} – Atoll`;
  refresh();
}

// Looks again, and then every so often while the page is seen.
async function refresh() {
  clearTimeout(timer);
  const section = current();
  const mine = (timer = setTimeout(() => {}, 0));
  try {
    if (user !== null && document.visibilityState === "visible") await SECTIONS[section]();
  } catch (error) {
    // It is told as the state of the server, or as logged out.
    console.debug(error);
  }
  if (timer === mine) timer = setTimeout(refresh, EVERY_MS);
}

function state(text, isGood) {
  at("state").textContent = text;
  at("state").classList.toggle("good", isGood);
  at("state").hidden = text === "";
}

async function askWho() {
  try {
    const session = await get("/session");
    user = session.user;
    at("user").textContent = session.has_password ? user : "no password is asked for";
    at("log-out").hidden = !session.has_password;
    show();
  } catch (error) {
    if (error.status !== 401) setTimeout(askWho, AGAIN_MS);
  }
}

on("gone", () => {
  state("The server does not answer. Trying again…", false);
  setTimeout(askWho, AGAIN_MS);
});
on("back", () => {
  state("The server is back.", true);
  setTimeout(() => state("", true), 5000);
});
on("loggedOut", () => {
  user = null;
  show();
  at("name").focus();
});

at("log-in").addEventListener("submit", async (event) => {
  event.preventDefault();
  const told = at("log-in-error");
  told.hidden = true;
  try {
    await post("/login", { user: at("name").value, password: at("password").value });
    at("password").value = "";
    await askWho();
    at("text").focus();
  } catch (error) {
    const { message, hint } = error.error ?? { message: "the server does not answer" };
    told.textContent = hint ? `${message}: ${hint}` : message;
    told.hidden = false;
    at("password").select();
  }
});

at("log-out").addEventListener("click", async () => {
  await post("/logout", {}).catch(() => {});
  editor.forget();
  user = null;
  show();
  at("name").focus();
});

window.addEventListener("hashchange", () => {
  show();
  at("main").focus({ preventScroll: true });
});
document.addEventListener("visibilitychange", refresh);
editor.start();
askWho();
