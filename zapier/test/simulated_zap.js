'use strict';

// A Zap with the trigger New Event, as Zapier lives it: it remembers ids, and runs what it has not seen.

const zapier = require('zapier-platform-core');

const App = require('..');

const appTester = zapier.createAppTester(App);
const { perform } = App.triggers.new_event.operation;

class Zap {
  #seen = new Set();

  constructor(authData, inbox, event_types) {
    this.authData = authData;
    this.inbox = inbox;
    this.inputData = { inbox: inbox.name, event_types };
    /** The ids of events, one for each run. */
    this.runs = [];
  }

  /** What the editor shows. */
  editorTest() {
    return this.#ask({ isLoadingSample: true, limit: 3 });
  }

  async turnOn() {
    const seen = await this.#ask({ isPopulatingDedupe: true });
    this.#seen = new Set(seen.map(({ id }) => id));
  }

  /** One poll, and the runs that it leads to. */
  async poll() {
    const fresh = (await this.#ask({})).filter(({ id }) => !this.#seen.has(id));
    for (const { id, event_id } of fresh) {
      this.#seen.add(id);
      this.runs.push(event_id);
    }
    return fresh;
  }

  #ask(meta) {
    const { authData, inputData } = this;
    return appTester(perform, { authData, inputData, meta: { limit: -1, ...meta } });
  }
}

const eventIds = (records) => records.map(({ event_id }) => event_id);
const reversed = (list) => [...list].reverse();

module.exports = { Zap, appTester, App, eventIds, reversed };
