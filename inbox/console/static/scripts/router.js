// What the address says: #/events?status=dead is the view `events` with its filters. So reload and back work.

export function parse(hash) {
  const [path, query = ""] = hash.replace(/^#\/?/, "").split("?");
  return { name: path, query: Object.fromEntries(new URLSearchParams(query)) };
}

export function address(name, query = {}) {
  const given = Object.entries(query).filter(([, value]) => value);
  return given.length ? `#/${name}?${new URLSearchParams(given)}` : `#/${name}`;
}

export function go(name, query) {
  location.hash = address(name, query);
}

// Without an entry in the history, and without telling the view: it knows already.
export function note(name, query) {
  history.replaceState(null, "", address(name, query));
}
