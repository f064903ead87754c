'use strict';

const { call } = require('../client');

// The service lists only those that somebody has named.
const DEFAULT = { name: 'default', event_types: null };

module.exports = {
  key: 'inbox_list',
  noun: 'Inbox',
  display: {
    label: 'List of Inboxes',
    description: 'Fills the field Inbox of the other steps.',
    hidden: true,
  },
  operation: {
    perform: async (z) => {
      const { data } = await call(z, { url: '/inboxes' });
      return [DEFAULT, ...data].map(({ name, event_types: types }) => ({
        id: name,
        name: `${name} (${types ? types.join(', ') : 'every event'})`,
      }));
    },
  },
};
