// The events that are shown, newest first: the first page, which is asked for again and again, and what was loaded after it.

export const PAGE = 25;
export const MOST_SHOWN = 500;

export class EventList {
  clear() {
    Object.assign(this, { events: [], next: null, extended: false, loaded: false });
  }

  constructor() {
    this.clear();
  }

  refresh({ events, next }) {
    this.loaded = true;
    const known = new Set(this.events.map((event) => event.id));
    // More has come in than a page holds: what lies between is not known, so it begins anew.
    const gap = next && !events.some((event) => known.has(event.id));
    if (!this.extended || gap || !next) {
      Object.assign(this, { events, next, extended: false });
      return;
    }
    const again = new Set(events.map((event) => event.id));
    const last = events.at(-1).timestamp;
    const older = this.events.filter((event) => event.timestamp <= last && !again.has(event.id));
    this.events = [...events, ...older].slice(0, MOST_SHOWN);
  }

  extend({ events, next }) {
    const known = new Set(this.events.map((event) => event.id));
    const older = events.filter((event) => !known.has(event.id));
    Object.assign(this, { events: [...this.events, ...older].slice(0, MOST_SHOWN), next, extended: true });
  }
}
