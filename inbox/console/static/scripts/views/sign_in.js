// The pages shown before the console opens: sign-in, and connection errors.

import { request } from "../api.js";
import { asyncButton, button, field, form, input } from "../controls.js";
import { el, fill } from "../dom.js";
import { alertSlot, showProblem } from "../messages.js";

export function openSignIn(main, reason, onsignin) {
  const key = input({ type: "password", class: "code", required: true });
  const keyField = field("API key", key, { urgent: true });

  // Checks the key itself: a check by the field would move the focus.
  async function signIn() {
    const text = key.value.trim();
    if (!text) return keyField.setError("Enter an API key.");
    // Other characters cannot be sent in a header.
    if (!/^[\x21-\x7e]+$/.test(text)) return keyField.setError("This doesn’t look like an API key. Copy the whole key and try again.");
    try {
      const { text: me } = await request("/me", { key: text });
      onsignin(text, JSON.parse(me));
    } catch (problem) {
      if (problem.status !== 401) throw problem;
      keyField.setError("Invalid API key. Check that you copied the whole key, and that it isn’t revoked or expired.");
      key.select();
    }
  }
  const entry = form("Sign in", signIn,
    el("h2", { tabindex: -1 }, "Sign in"),
    el("p", { class: "lead" }, "Send events to your inbox, and poll them when you’re ready."),
    reason && el("p", { class: "notice", role: "status" }, reason), keyField);
  entry.classList.add("card");
  entry.append(el("p", { class: "faint small" }, "Your key is kept in this tab until you close it, and sent only to this service."));

  fill(main, el("div", { class: "sign-in" }, entry,
    el("div", { class: "faint small stack-tight" },
      el("p", {}, "No key yet? ", el("code", {}, "make run"), " prints one on its first start. To create another, run ",
        el("code", {}, ".venv/bin/inbox keys create demo --scope all"), ", or on a deployed service ",
        el("code", {}, "inbox keys create TENANT --scope all"), "."))));
  key.focus();
}

// Shown if the key of this tab could not be checked.
export function openConnectionError(main, problem, retry, signOut) {
  const slot = alertSlot();
  const tryAgain = asyncButton("Try again", retry, "primary");
  fill(main, el("div", { class: "sign-in" }, el("section", { class: "card stack", "aria-labelledby": "connection-error" },
    el("h2", { id: "connection-error", tabindex: -1 }, "Can’t open the console"),
    slot,
    el("p", { class: "faint" }, "You’re still signed in: this tab keeps your key."),
    el("div", { class: "line" }, tryAgain, button("Sign out", signOut)))));
  showProblem(slot, problem);
  tryAgain.focus();
}
