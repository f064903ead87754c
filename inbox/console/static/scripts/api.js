// Calls the public API. Every call has a time limit, and every refusal becomes a Problem in plain words.

import { session } from "./session.js";

const LIMIT_MS = 20_000;

class Problem extends Error {
  constructor(title, { detail = "", status = 0, requestId = null, faults = [] } = {}) {
    super(detail ? `${title}. ${detail}` : title);
    Object.assign(this, { title, detail, status, requestId, faults });
  }
}

let whenRefused = () => {};
export function onKeyRefused(listener) {
  whenRefused = listener;
}

// `body` is JSON as text, so that numbers go out as they were written.
export async function call(path, { method = "GET", body, signal, key = session.key } = {}) {
  const headers = { Authorization: `Bearer ${key}` };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const limit = AbortSignal.timeout(LIMIT_MS);
  let response, text;
  try {
    response = await fetch(path, {
      method, headers, body, cache: "no-store", credentials: "omit",
      signal: signal ? AbortSignal.any([signal, limit]) : limit,
    });
    text = await response.text();
  } catch (error) {
    if (signal?.aborted) throw error;
    throw unanswered(limit.aborted);
  }
  if (response.ok) return { status: response.status, headers: response.headers, text };
  const problem = problemOf(response, text);
  if (problem.status === 401 && key === session.key && session.me) whenRefused(problem);
  throw problem;
}

export async function get(path, signal) {
  return JSON.parse((await call(path, { signal })).text);
}

export async function send(method, path, document, signal) {
  const body = document === undefined ? undefined : JSON.stringify(document);
  const { text, status } = await call(path, { method, body, signal });
  return { status, document: text ? JSON.parse(text) : null };
}

// The path of the next page, out of the header Link.
export function nextPage(headers) {
  return /<([^>]*)>;\s*rel="next"/.exec(headers.get("Link") ?? "")?.[1] ?? null;
}

export function withQuery(path, parameters) {
  const given = Object.entries(parameters).filter(([, value]) => value !== undefined && value !== null && value !== "");
  return given.length ? `${path}?${new URLSearchParams(given)}` : path;
}

function unanswered(tooLate) {
  return tooLate
    ? new Problem("No answer in time", { detail: `The service has not answered within ${LIMIT_MS / 1000} seconds.` })
    : new Problem("The service cannot be reached", { detail: "It may be restarting, or the network is down." });
}

function problemOf(response, text) {
  let document = {};
  try {
    document = JSON.parse(text) ?? {};
  } catch {
    // Something between us and the service has answered in its place.
  }
  return new Problem(document.title ?? `The service answered ${response.status}`, {
    detail: document.detail ?? "",
    status: response.status,
    requestId: document.request_id ?? response.headers.get("X-Request-Id"),
    faults: document.errors ?? [],
  });
}
