// All views: name in the URL, title, and the scopes of which a key needs one.

import { session } from "../session.js";
import { openConnect } from "./connect.js";
import { openEvents } from "./events.js";
import { openInboxes } from "./inboxes.js";
import { openKeys } from "./keys.js";
import { openOverview } from "./overview.js";
import { openSend } from "./send.js";
import { openTenants } from "./tenants.js";

const ANY = ["events:write", "events:read", "inbox:read", "tenant:manage", "admin"];

export const VIEWS = [
  { name: "overview", title: "Overview", scopes: ["events:read", "inbox:read"], open: openOverview },
  { name: "events", title: "Events", scopes: ["events:read", "inbox:read"], open: openEvents },
  { name: "inboxes", title: "Inboxes", scopes: ["events:read", "inbox:read", "tenant:manage"], open: openInboxes },
  { name: "send", title: "Send", scopes: ["events:write"], open: openSend },
  { name: "keys", title: "Keys", scopes: ["tenant:manage"], open: openKeys },
  { name: "connect", title: "Connect", scopes: ANY, open: openConnect },
  { name: "tenants", title: "Tenants", scopes: ["admin"], open: openTenants, hidden: () => !session.hasScope("admin") },
];
