// What a newcomer sees in place of figures: what this is for, and where to begin.

import { el, icon } from "../dom.js";
import { address } from "../router.js";
import { session } from "../session.js";

const STEPS = [
  ["system", "Systems send events", "A shop, a form, a webhook: whatever happens is sent with POST /events, and is on disk once it is answered."],
  ["inboxes", "They wait in your inbox", "In order, each exactly as it was sent, until somebody asks for them. Nothing here takes them away."],
  ["consumer", "Consumers poll them", "Zapier, Make, n8n or a script of yours asks GET /inbox, and each event is handed out once."],
];

export function welcome() {
  return el("section", { class: "card welcome", "aria-labelledby": "welcome" },
    el("div", {}, el("h3", { id: "welcome" }, "Nothing has come in yet. This is how it works"),
      el("p", { class: "faint" }, "Three steps, and you can try all of them from here.")),
    el("ol", { class: "journey" }, STEPS.map(([picture, title, words]) =>
      el("li", {}, el("span", { class: "badge-icon" }, icon(picture)), el("h4", {}, title), el("p", {}, words)))),
    el("div", { class: "line" },
      session.may("events:write") && el("a", { class: "button primary", href: address("send") }, "Send a first event"),
      el("a", { class: "button", href: address("connect") }, "Connect a system")));
}
