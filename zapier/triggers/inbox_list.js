'use strict';

const { call } = require('../service');

const DEFAULT = { id: 'default', name: 'default (every event)' };

const nameOf = ({ name, event_types: types }) => (types ? `${name} (${types.join(', ')})` : `${name} (every event)`);

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
      return [DEFAULT, ...data.map((inbox) => ({ id: inbox.name, name: nameOf(inbox) }))];
    },
  },
};
