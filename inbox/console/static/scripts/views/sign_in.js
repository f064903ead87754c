// Signing in: a key is tried with GET /me, which says whose it is.

import { call } from "../api.js";
import { busy, busyButton, button, field, form, input, submit } from "../controls.js";
import { el, fill } from "../dom.js";
import { alertSlot, showProblem } from "../messages.js";

export function openSignIn(main, reason, signedIn) {
  const key = input({ type: "password", class: "code", required: true });
  const keyField = field("API key", key, null, { urgent: true });
  const slot = alertSlot();
  const enter = submit("Sign in");

  const signIn = form(() => {
    const text = key.value.trim();
    keyField.fault("");
    fill(slot);
    if (!text) return keyField.fault("Paste a key first.");
    // Anything else cannot be part of a header.
    if (!/^[\x21-\x7e]+$/.test(text)) return keyField.fault("A key has letters and digits only. Copy it once more, as a whole.");
    return busy(enter, () => tryKey(text));
  },
  el("h2", { tabindex: -1 }, "Sign in"),
  el("p", { class: "lead" }, "Systems send events to this service, and consumers poll them. Sign in to see what waits."),
  reason && el("p", { class: "notice", role: "status" }, reason),
  keyField, slot, enter,
  el("p", { class: "faint small" }, "It is kept in this tab until you close it, and sent to this service only."));
  signIn.classList.add("card");

  async function tryKey(text) {
    try {
      const { text: me } = await call("/me", { key: text });
      signedIn(text, JSON.parse(me));
    } catch (problem) {
      if (problem.status === 401) {
        keyField.fault("The service does not know this key. It may be mistyped, revoked or expired. Copy it once more, as a whole.");
        key.select();
      } else showProblem(slot, problem);
    }
  }

  fill(main, el("div", { class: "sign-in" }, signIn,
    el("div", { class: "faint small stack-tight" },
      el("p", {}, "No key yet? ", el("code", {}, "make run"), " prints one when it first starts, and ",
        el("code", {}, ".venv/bin/inbox keys create demo --scope all"), " makes another. Elsewhere it is ", el("code", {}, "inbox keys create TENANT --scope all"), "."))));
  key.focus();
}

// The key of this tab could not be tried: it is kept until the service itself refuses it.

export function openNoAnswer(main, problem, again, signOut) {
  const slot = alertSlot();
  const retry = busyButton("Try again", again, "primary");
  fill(main, el("div", { class: "sign-in" }, el("section", { class: "card stack", "aria-labelledby": "no-answer" },
    el("h2", { id: "no-answer", tabindex: -1 }, "The console could not be opened"),
    slot,
    el("p", { class: "faint" }, "Your key is kept in this tab."),
    el("div", { class: "line" }, retry, button("Sign out", signOut)))));
  showProblem(slot, problem);
  retry.focus();
}
