'use strict';

// A Zap with the New Event trigger. Like Zapier, it deduplicates by ID.

const zapier = require('zapier-platform-core');

const App = require('..');

const appTester = zapier.createAppTester(App);
const { perform } = App.triggers.new_event.operation;

class SimulatedZap {
  #seen = new Set();

  constructor(authData, inbox, event_types) {
    this.authData = authData;
    this.inbox = inbox;
    this.inputData = { inbox: inbox.name, event_types };
    /** The event ID of each run. */
    this.runs = [];
  }

  /** Returns the events that the editor shows. */
  editorTest() {
    return this.#perform({ isLoadingSample: true, limit: 3 });
  }

  async turnOn() {
    const seen = await this.#perform({ isPopulatingDedupe: true });
    this.#seen = new Set(seen.map(({ id }) => id));
  }

  /** Polls once, and returns the records that start a run. */
  async poll() {
    const fresh = (await this.#perform({})).filter(({ id }) => !this.#seen.has(id));
    for (const { id, event_id } of fresh) {
      this.#seen.add(id);
      this.runs.push(event_id);
    }
    return fresh;
  }

  #perform(meta) {
    const { authData, inputData } = this;
    return appTester(perform, { authData, inputData, meta: { limit: -1, ...meta } });
  }
}

const eventIds = (records) => records.map(({ event_id }) => event_id);
const reversed = (list) => [...list].reverse();

module.exports = { SimulatedZap, appTester, App, eventIds, reversed };
