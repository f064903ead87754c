'use strict';

const assert = require('node:assert/strict');
const { test } = require('node:test');

const zapier = require('zapier-platform-core');

const { App } = require('./simulated_zap');

test('definition passes the validation of zapier push', async () => {
  const { results } = await zapier.createAppHandler(App)({ command: 'validate' });
  assert.deepEqual(results, []);
});

test('samples contain all output fields', () => {
  for (const step of [App.triggers.new_event, App.creates.send_event, App.searches.find_event]) {
    const { outputFields, sample } = step.operation;
    for (const { key } of outputFields) assert.ok(key in sample, `${step.key}: ${key}`);
  }
});
