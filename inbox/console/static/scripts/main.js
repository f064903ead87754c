// Entry point: signs in, and shows the view that the URL names.

import { getJson, request, session } from "./api.js";
import { asyncButton, button, field, form, input, viewHeader } from "./controls.js";
import { closeAllDialogs, isLocked } from "./dialogs.js";
import { el, fill, icon, userText } from "./dom.js";
import { alertSlot, showProblem } from "./messages.js";
import { hashFor, parseHash } from "./router.js";
import { openConnect } from "./views/connect.js";
import { openEvents } from "./views/events.js";
import { openInboxes } from "./views/inboxes.js";
import { openKeys } from "./views/keys.js";
import { openOverview } from "./views/overview.js";
import { openSend } from "./views/send.js";
import { openTenants } from "./views/tenants.js";

const PRODUCT = "Polling Inbox";
const KEY_REJECTED = "Your API key was revoked or has expired. Sign in with another key.";
const ALL_SCOPES = ["events:write", "events:read", "inbox:read", "tenant:manage", "admin"];

// The name in the URL, the title, and the scopes. A key needs one of them.
const VIEWS = [
  { name: "overview", title: "Overview", scopes: ["events:read", "inbox:read"], open: openOverview },
  { name: "events", title: "Events", scopes: ["events:read", "inbox:read"], open: openEvents },
  { name: "inboxes", title: "Inboxes", scopes: ["events:read", "inbox:read", "tenant:manage"], open: openInboxes },
  { name: "send", title: "Send", scopes: ["events:write"], open: openSend },
  { name: "keys", title: "Keys", scopes: ["tenant:manage"], open: openKeys },
  { name: "connect", title: "Connect", scopes: ALL_SCOPES, open: openConnect },
  { name: "tenants", title: "Tenants", scopes: ["admin"], open: openTenants },
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
  showFrame();
  document.title = `Sign in · ${PRODUCT}`;
  const key = input({ type: "password", class: "code", required: true });
  const keyField = field("API key", key, { urgent: true });

  // Checks the key here and not in the field, because the form moves the focus to invalid fields.
  async function submit() {
    const text = key.value.trim();
    if (!text) return keyField.setError("Enter an API key.");
    // Other characters cannot be sent in a header.
    if (!/^[\x21-\x7e]+$/.test(text)) return keyField.setError("This doesn’t look like an API key. Copy the whole key and try again.");
    try {
      const { text: me } = await request("/me", { key: text });
      session.start(text, JSON.parse(me));
    } catch (problem) {
      if (problem.status !== 401) throw problem;
      keyField.setError("Invalid API key. Check that you copied the whole key, and that it isn’t revoked or expired.");
      return key.select();
    }
    openConsole();
    main.focus();
  }
  const signInForm = form("Sign in", submit,
    el("h2", { tabindex: -1 }, "Sign in"),
    el("p", { class: "faint" }, "Send events to your inbox, and poll them when you’re ready."),
    reason && el("p", { class: "notice", role: "status" }, reason), keyField);
  signInForm.classList.add("card");
  signInForm.append(el("p", { class: "faint small" }, "Your key is kept in this tab until you close it, and sent only to this service."));

  fill(main, el("div", { class: "sign-in" }, signInForm,
    el("div", { class: "faint small stack-tight" },
      el("p", {}, "No key yet? ", el("code", {}, "make run"), " prints one on its first start. To create another, run ",
        el("code", {}, ".venv/bin/inbox keys create demo --scope all"), ", or on a deployed service ",
        el("code", {}, "inbox keys create TENANT --scope all"), "."))));
  key.focus();
}

function signOut() {
  history.replaceState(null, "", location.pathname);
  signIn("You signed out.");
}

function openConsole() {
  showFrame();
  showView();
}

function showView({ oldURL } = {}) {
  if (!session.me) return;
  // The content of a locked dialog would be lost, so the navigation is undone.
  if (isLocked()) return history.pushState(null, "", oldURL);
  const route = parseHash(location.hash);
  const view = getOfferedViews().find((each) => each.name === route.name);
  if (!view) {
    // Every key may open Connect, so it is the last choice.
    const first = VIEWS.find(({ name, scopes }) => name !== "connect" && session.hasScope(...scopes));
    return location.replace(hashFor(first?.name ?? "connect"));
  }
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

// Signs in with the key of this tab. Only a rejection by the service removes the key.
async function resume() {
  const { signal } = current.controller;
  try {
    session.start(session.key, await getJson("/me", signal));
  } catch (problem) {
    if (signal.aborted) return;
    if (problem.status === 401) signIn(KEY_REJECTED);
    else if (problem.status === 403) signIn(problem.message);
    else showConnectionError(problem);
    return;
  }
  openConsole();
}

function showConnectionError(problem) {
  const slot = alertSlot();
  const tryAgain = asyncButton("Try again", async () => {
    await resume();
    if (session.me) main.focus();
  }, "primary");
  fill(main, el("div", { class: "sign-in" }, el("section", { class: "card stack", "aria-labelledby": "connection-error" },
    el("h2", { id: "connection-error", tabindex: -1 }, "Can’t open the console"),
    slot,
    el("p", { class: "faint" }, "You’re still signed in: this tab keeps your key."),
    el("div", { class: "line" }, tryAgain, button("Sign out", signOut)))));
  showProblem(slot, problem);
  tryAgain.focus();
}

// Returns the views in the navigation. A view explains a missing scope. Tenants is listed for admin keys only.
function getOfferedViews() {
  return VIEWS.filter((view) => view.name !== "tenants" || session.hasScope(...view.scopes));
}

function showFrame() {
  fill(account,
    session.me && userText(session.me.tenant_name, { class: "tenant", title: `Tenant ID: ${session.me.tenant_id}` }),
    el("a", { class: "button plain small docs", href: "/docs" }, "API docs"),
    session.me && button("Sign out", signOut, "small"));
  fill(side, session.me && el("nav", { class: "nav", "aria-label": "Console" }, el("ul", {}, getOfferedViews().map((view) =>
    el("li", {}, el("a", { href: hashFor(view.name), "data-view": view.name }, icon(view.name), view.title))))));
}

function markCurrent(name) {
  for (const link of side.querySelectorAll("a")) link.ariaCurrent = link.dataset.view === name ? "page" : null;
  side.querySelector("[aria-current]").scrollIntoView({ block: "nearest", inline: "nearest" });
}

document.getElementById("skip").addEventListener("click", (event) => {
  event.preventDefault();
  main.focus();
});
addEventListener("hashchange", showView);
session.onkeyrejected = () => signIn(KEY_REJECTED);

if (session.key) resume();
else signIn();
