// Requests to the server, and whether it is there.

const listeners = { gone: [], back: [], loggedOut: [] };
let isGone = false;

// What a request was refused with: the error of a statement, or of the request.
export class Refused extends Error {
  constructor(status, body) {
    super(body.error?.message ?? `the server answered ${status}`);
    this.status = status;
    this.error = body.error ?? { message: this.message };
    this.results = body.results ?? [];
  }
}

export function on(event, listener) {
  listeners[event].push(listener);
}

function tell(event) {
  for (const listener of listeners[event]) listener();
}

function found(isThere) {
  if (isThere !== isGone) return;
  isGone = !isThere;
  tell(isGone ? "gone" : "back");
}

async function request(path, options) {
  let answer, body;
  try {
    const headers = { "X-Atoll-Console": "1", "Content-Type": "application/json" };
    answer = await fetch("/api" + path, { ...options, headers, cache: "no-store", redirect: "error" });
    body = await answer.json();
  } catch (error) {
    if (error.name !== "AbortError") found(false);
    throw error;
  }
  const stops = answer.status === 503 && body.error?.state === "57P01";
  found(!stops);
  if (answer.ok) return body;
  if (answer.status === 401 && path !== "/login") tell("loggedOut");
  throw new Refused(answer.status, body);
}

export const get = (path) => request(path, {});

export const post = (path, fields, signal) => request(path, { method: "POST", body: JSON.stringify(fields), signal });
