// The API key of this tab, and an HTTP client for the public API. Failed requests throw a Problem with a title and
// detail for the user.

const TIMEOUT_MS = 20_000;
const STORAGE_KEY = "inbox-key";

// The key is kept in sessionStorage. `me` is the principal it belongs to.
export const session = {
  key: sessionStorage.getItem(STORAGE_KEY),
  me: null,
  // Unsent input of the Send view.
  draft: null,
  onkeyrejected: () => {},

  start(key, me) {
    sessionStorage.setItem(STORAGE_KEY, key);
    Object.assign(session, { key, me });
  },

  end() {
    sessionStorage.removeItem(STORAGE_KEY);
    Object.assign(session, { key: null, me: null, draft: null });
  },

  hasScope(...anyOf) {
    return anyOf.some((scope) => session.me?.scopes.includes(scope));
  },
};

class Problem extends Error {
  constructor(title, detail, response = {}) {
    super(detail ? `${title}. ${detail}` : title);
    Object.assign(this, { title, detail, ...response });
  }
}

// Returns {status, headers, text}. `body` is JSON text, so that numbers are sent exactly as they were typed.
export async function request(path, { method = "GET", body, signal, key = session.key } = {}) {
  const headers = { Authorization: `Bearer ${key}` };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const timeout = AbortSignal.timeout(TIMEOUT_MS);
  let response, text;
  try {
    response = await fetch(path, {
      method, headers, body, cache: "no-store", credentials: "omit",
      signal: signal ? AbortSignal.any([signal, timeout]) : timeout,
    });
    text = await response.text();
  } catch (error) {
    if (signal?.aborted) throw error;
    throw timeout.aborted
      ? new Problem("Request timed out", `The service did not respond within ${TIMEOUT_MS / 1000} seconds.`)
      : new Problem("Can’t reach the service", "It may be restarting, or your network may be down.");
  }
  if (response.ok) return { status: response.status, headers: response.headers, text };
  const problem = parseProblem(response, text);
  if (problem.status === 401 && key === session.key && session.me) session.onkeyrejected();
  throw problem;
}

export async function getJson(path, signal) {
  return JSON.parse((await request(path, { signal })).text);
}

export async function sendJson(method, path, document, signal) {
  const body = document === undefined ? undefined : JSON.stringify(document);
  const { text, status } = await request(path, { method, body, signal });
  return { status, document: text ? JSON.parse(text) : null };
}

// Returns the path of the next page from the `Link` header, or null.
export function getNextPagePath(headers) {
  return /<([^>]*)>;\s*rel="next"/.exec(headers.get("Link") ?? "")?.[1] ?? null;
}

// Returns the path with a query. Leaves out parameters without a value.
export function withQuery(path, parameters) {
  const given = Object.entries(parameters).filter(([, value]) => value);
  return given.length ? `${path}?${new URLSearchParams(given)}` : path;
}

function parseProblem(response, text) {
  let document = {};
  try {
    document = JSON.parse(text) ?? {};
  } catch {
    // A proxy responded instead of the service.
  }
  return new Problem(document.title ?? `Request failed with status ${response.status}`, document.detail, {
    status: response.status,
    requestId: document.request_id ?? response.headers.get("X-Request-Id"),
    errors: document.errors,
  });
}
