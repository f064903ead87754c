// What the address says: #/events?status=dead is the view `events` with its filters. So reload and back work.

const OVER = "over";

export function parse(hash) {
  const [path, query = ""] = hash.replace(/^#\/?/, "").split("?");
  return { name: path, query: Object.fromEntries(new URLSearchParams(query)) };
}

export function address(name, query = {}) {
  const given = Object.entries(query).filter(([, value]) => value);
  return given.length ? `#/${name}?${new URLSearchParams(given)}` : `#/${name}`;
}

// Something over what is shown, for which there is an entry in the history. The way back closes it.
export function goOver(name, query) {
  location.hash = address(name, query);
  history.replaceState(OVER, "");
}

export function isOver() {
  return history.state === OVER;
}

// Without an entry in the history, and without telling the view: it knows already.
export function note(name, query) {
  history.replaceState(null, "", address(name, query));
}
