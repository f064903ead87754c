// What surrounds every view: the bar with the tenant, and the navigation.

import { button } from "./controls.js";
import { el, fill, foreign, icon } from "./dom.js";
import { address } from "./router.js";
import { session } from "./session.js";

const account = document.getElementById("account");
const side = document.getElementById("side");

export function showFrame(views, signOut) {
  fill(account,
    session.me && foreign(session.me.tenant_name, { class: "tenant", title: `Tenant ${session.me.tenant_id}` }),
    el("a", { class: "button plain small docs", href: "/docs" }, "API docs"),
    session.me && button("Sign out", signOut, "small"));
  fill(side, views.length > 0 && el("nav", { class: "nav", "aria-label": "Console" }, el("ul", {}, views.map((view) =>
    el("li", {}, el("a", { href: address(view.name), "data-view": view.name }, icon(view.name), view.title))))));
}

export function markCurrent(name) {
  for (const link of side.querySelectorAll("a")) {
    if (link.dataset.view === name) {
      link.setAttribute("aria-current", "page");
      link.scrollIntoView({ block: "nearest", inline: "nearest" });
    } else link.removeAttribute("aria-current");
  }
}
