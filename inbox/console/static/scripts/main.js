// Entry point: signs in, and shows the view that the URL names.

import { onKeyRejected, request, session } from "./api.js";
import { button, viewHeader } from "./controls.js";
import { closeAllDialogs, isLocked } from "./dialogs.js";
import { el, fill, icon, userText } from "./dom.js";
import { hashFor, parseHash } from "./router.js";
import { openConnect } from "./views/connect.js";
import { openEvents } from "./views/events.js";
import { openInboxes } from "./views/inboxes.js";
import { openKeys } from "./views/keys.js";
import { openOverview } from "./views/overview.js";
import { openSend } from "./views/send.js";
import { openConnectionError, openSignIn } from "./views/sign_in.js";
import { openTenants } from "./views/tenants.js";

const PRODUCT = "Polling Inbox";
const REJECTED = "Your API key was revoked or has expired. Sign in with another key.";
const ANY = ["events:write", "events:read", "inbox:read", "tenant:manage", "admin"];

// The name in the URL, the title, and the scopes of which a key needs one.
const VIEWS = [
  { name: "overview", title: "Overview", scopes: ["events:read", "inbox:read"], open: openOverview },
  { name: "events", title: "Events", scopes: ["events:read", "inbox:read"], open: openEvents },
  { name: "inboxes", title: "Inboxes", scopes: ["events:read", "inbox:read", "tenant:manage"], open: openInboxes },
  { name: "send", title: "Send", scopes: ["events:write"], open: openSend },
  { name: "keys", title: "Keys", scopes: ["tenant:manage"], open: openKeys },
  { name: "connect", title: "Connect", scopes: ANY, open: openConnect },
  { name: "tenants", title: "Tenants", scopes: ["admin"], open: openTenants, hidden: () => !session.hasScope("admin") },
];

const main = document.getElementById("main");
const account = document.getElementById("account");
const side = document.getElementById("side");
let current = { name: null, update: null, controller: new AbortController() };

function closeView() {
  current.controller.abort();
  closeAllDialogs();
  current = { name: null, update: null, controller: new AbortController() };
}

function signIn(reason = "") {
  closeView();
  session.end();
  showFrame([]);
  document.title = `Sign in · ${PRODUCT}`;
  openSignIn(main, reason, (key, me) => {
    session.start(key, me);
    enter();
    main.focus();
  });
}

function signOut() {
  history.replaceState(null, "", location.pathname);
  signIn("You signed out.");
}

function enter() {
  showFrame(VIEWS.filter((view) => !view.hidden?.()));
  showView();
}

function showView({ oldURL } = {}) {
  if (!session.me) return;
  // The content of a locked dialog would be lost, so the navigation is undone.
  if (isLocked()) return history.pushState(null, "", oldURL);
  const route = parseHash(location.hash);
  const view = VIEWS.find((each) => each.name === route.name && !each.hidden?.());
  if (!view) return location.replace(hashFor(firstView().name));
  if (current.name === view.name) return current.update?.(route.query);
  const isNavigation = current.name !== null;
  closeView();
  current.name = view.name;
  document.title = `${view.title} · ${PRODUCT}`;
  markCurrent(view.name);
  openView(view, route.query);
  scrollTo(0, 0);
  if (isNavigation) main.querySelector("h2").focus();
}

function openView(view, query) {
  const root = el("div", { class: "view" });
  fill(main, root);
  if (session.hasScope(...view.scopes)) {
    current.update = view.open(root, { query, signal: current.controller.signal })?.update;
    return;
  }
  root.append(viewHeader(view.title), el("div", { class: "notice warn" },
    el("p", {}, "Your key is missing the scope ", el("code", {}, view.scopes[0]), "."),
    el("p", {}, "Sign in with a key that has it. ", ...(view.scopes[0] === "admin"
      ? ["An operator can create one with ", el("code", {}, "inbox keys create system --scope admin"), "."]
      : ["Create one under Keys with a key that has ", el("code", {}, "tenant:manage"), ", or ask an operator to run ",
        el("code", {}, `inbox keys create ${session.me.tenant_id} --scope all`), "."]))));
}

// Returns the first view the key may open. Connect, which every key may open, comes last.
function firstView() {
  const open = VIEWS.filter((view) => !view.hidden?.() && session.hasScope(...view.scopes));
  return open.find((view) => view.name !== "connect") ?? open[0];
}

// Signs in with the key of this tab, and returns true on success. Only a rejection by the service removes the key.
async function resume() {
  const { signal } = current.controller;
  try {
    const { text } = await request("/me", { signal });
    session.start(session.key, JSON.parse(text));
  } catch (problem) {
    if (signal.aborted) return false;
    if (problem.status === 401) signIn(REJECTED);
    else if (problem.status === 403) signIn(problem.message);
    else openConnectionError(main, problem, async () => (await resume()) && main.focus(), signOut);
    return false;
  }
  enter();
  return true;
}

function showFrame(views) {
  fill(account,
    session.me && userText(session.me.tenant_name, { class: "tenant", title: `Tenant ID: ${session.me.tenant_id}` }),
    el("a", { class: "button plain small docs", href: "/docs" }, "API docs"),
    session.me && button("Sign out", signOut, "small"));
  fill(side, views.length > 0 && el("nav", { class: "nav", "aria-label": "Console" }, el("ul", {}, views.map((view) =>
    el("li", {}, el("a", { href: hashFor(view.name), "data-view": view.name }, icon(view.name), view.title))))));
}

function markCurrent(name) {
  for (const link of side.querySelectorAll("a")) {
    if (link.dataset.view === name) {
      link.setAttribute("aria-current", "page");
      link.scrollIntoView({ block: "nearest", inline: "nearest" });
    } else link.removeAttribute("aria-current");
  }
}

document.getElementById("skip").addEventListener("click", (event) => {
  event.preventDefault();
  main.focus();
});
addEventListener("hashchange", showView);
onKeyRejected(() => signIn(REJECTED));

if (session.key) resume();
else signIn();
