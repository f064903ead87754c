// Starts the console: who is signed in, and which view the address asks for.

import { call, onKeyRefused } from "./api.js";
import { button, viewHead } from "./controls.js";
import { closeAll, isHeld } from "./dialogs.js";
import { el, fill, foreign, icon } from "./dom.js";
import { address, parse } from "./router.js";
import { session } from "./session.js";
import { VIEWS } from "./views/index.js";
import { openNoAnswer, openSignIn } from "./views/sign_in.js";

const PRODUCT = "Polling Inbox";
const main = document.getElementById("main");
const account = document.getElementById("account");
const side = document.getElementById("side");
let current = { name: null, update: null, leave: new AbortController() };

function leave() {
  current.leave.abort();
  closeAll();
  current = { name: null, update: null, leave: new AbortController() };
}

function signIn(reason = "") {
  leave();
  session.end();
  showFrame([], signOut);
  document.title = `Sign in · ${PRODUCT}`;
  openSignIn(main, reason, (key, me) => {
    session.begin(key, me);
    enter();
    main.focus();
  });
}

// Whoever comes next begins at the beginning.
function signOut() {
  history.replaceState(null, "", location.pathname);
  signIn("You have signed out.");
}

function enter() {
  showFrame(VIEWS.filter((view) => !view.hidden?.()), signOut);
  show();
}

function show({ oldURL } = {}) {
  if (!session.me) return;
  // What is in the dialog would be lost: the address comes back to it.
  if (isHeld()) return history.pushState(null, "", oldURL);
  const route = parse(location.hash);
  const view = VIEWS.find((each) => each.name === route.name && !each.hidden?.());
  if (!view) return location.replace(address(firstView().name));
  if (current.name === view.name) return current.update?.(route.query);
  const arriving = current.name !== null;
  leave();
  current.name = view.name;
  document.title = `${view.title} · ${PRODUCT}`;
  markCurrent(view.name);
  openView(view, route.query);
  scrollTo(0, 0);
  if (arriving) main.querySelector("h2").focus();
}

function openView(view, query) {
  const root = el("div", { class: "view" });
  fill(main, root);
  if (session.may(...view.scopes)) {
    current.update = view.open(root, { query, signal: current.leave.signal })?.update;
    return;
  }
  root.append(viewHead(view.title), el("div", { class: "notice warn" },
    el("p", {}, "This key may not do that: it lacks the scope ", el("code", {}, view.scopes[0]), "."),
    el("p", {}, "Sign in with a key that has it. ", ...(view.scopes[0] === "admin"
      ? ["An operator creates one with ", el("code", {}, "inbox keys create system --scope admin"), "."]
      : ["A key with ", el("code", {}, "tenant:manage"), " creates others under Keys, and an operator with ",
        el("code", {}, `inbox keys create ${session.me.tenant_id} --scope all`), "."]))));
}

// Whatever shows more than lines to paste.
function firstView() {
  const open = VIEWS.filter((view) => !view.hidden?.() && session.may(...view.scopes));
  return open.find((view) => view.name !== "connect") ?? open[0];
}

// With the key that the tab has kept, which is forgotten only if the service refuses it. True if that is open now.
async function resume() {
  const { signal } = current.leave;
  try {
    const { text } = await call("/me", { signal });
    session.begin(session.key, JSON.parse(text));
  } catch (problem) {
    if (signal.aborted) return false;
    if (problem.status === 401) signIn("The key of this tab is no longer valid: it was revoked, or has expired. Sign in with another one.");
    else if (problem.status === 403) signIn(problem.message);
    else openNoAnswer(main, problem, async () => (await resume()) && main.focus(), signOut);
    return false;
  }
  enter();
  return true;
}

// What surrounds every view: the bar with the tenant, and the navigation.
function showFrame(views, signOut) {
  fill(account,
    session.me && foreign(session.me.tenant_name, { class: "tenant", title: `Tenant ${session.me.tenant_id}` }),
    el("a", { class: "button plain small docs", href: "/docs" }, "API docs"),
    session.me && button("Sign out", signOut, "small"));
  fill(side, views.length > 0 && el("nav", { class: "nav", "aria-label": "Console" }, el("ul", {}, views.map((view) =>
    el("li", {}, el("a", { href: address(view.name), "data-view": view.name }, icon(view.name), view.title))))));
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
addEventListener("hashchange", show);
onKeyRefused(() => signIn("The service no longer takes this key: it was revoked, or has expired. Sign in with another one."));

if (session.key) resume();
else signIn();
