'use strict';

const { call } = require('../client');

// The API lists named inboxes only.
const DEFAULT = { name: 'default', event_types: null };

module.exports = {
  key: 'inbox_list',
  noun: 'Inbox',
  display: {
    label: 'List of Inboxes',
    description: 'Lists inboxes for the Inbox field of other steps.',
    hidden: true,
  },
  operation: {
    perform: async (z) => {
      const { data } = await call(z, { url: '/inboxes' });
      return [DEFAULT, ...data].map(({ name, event_types: types }) => ({
        id: name,
        name: `${name} (${types ? types.join(', ') : 'all events'})`,
      }));
    },
  },
};
