'use strict';

const { version: platformVersion } = require('zapier-platform-core');

const authentication = require('./authentication');
const findEvent = require('./searches/find_event');
const inboxList = require('./triggers/inbox_list');
const newEvent = require('./triggers/new_event');
const sendEvent = require('./creates/send_event');
const { authorize, throwForError } = require('./client');
const { version } = require('./package.json');

module.exports = {
  version,
  platformVersion,
  authentication,
  beforeRequest: [authorize],
  afterResponse: [throwForError],
  triggers: { [newEvent.key]: newEvent, [inboxList.key]: inboxList },
  creates: { [sendEvent.key]: sendEvent },
  searches: { [findEvent.key]: findEvent },
};
