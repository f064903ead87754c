// Sends an event. What is wrong with it is said while it is typed.

import { call } from "../api.js";
import { copyButton } from "../clipboard.js";
import { busy, field, form, input, submit, viewHead } from "../controls.js";
import { sendLine } from "../curl.js";
import { el, fill } from "../dom.js";
import { DEEPEST, compact, parse } from "../exact_json.js";
import { alertSlot, attempt } from "../messages.js";
import { address } from "../router.js";
import { session } from "../session.js";
import { EVENT_TYPE } from "./event_types.js";

const EXAMPLE = '{\n  "order": 1001,\n  "total": 99.90,\n  "customer": "Ada Lovelace"\n}';
const LONGEST_KEY = 255;
const LONGEST_LINE = 2000;

export function openSend(root, { signal }) {
  const draft = (session.draft ??= { type: "order.created", payload: EXAMPLE, key: "" });
  const type = input({ class: "code" });
  const payload = el("textarea", { class: "input code", rows: 11, spellcheck: "false" });
  const idempotencyKey = input({ class: "code", placeholder: "order-1001" });
  const parts = [
    { name: "type", control: type, fault: typeFault, field: field("Type", type, "What happened, such as order.created. May be empty.") },
    { name: "payload", control: payload, fault: payloadFault, field: field("Payload", payload, "A JSON object. It comes out as it goes in, number for number.") },
    { name: "key", control: idempotencyKey, fault: keyFault, field: field("Idempotency key", idempotencyKey, "Optional. The same event with the same key is stored once, so that a retry is harmless.") },
  ];
  const slot = alertSlot();
  const answer = el("div", { class: "slot", role: "status" });
  const line = el("pre", { tabindex: 0, role: "group", "aria-label": "The same with curl" });
  const copies = copyButton(() => curl);
  const go = submit("Send event");
  let curl = "";

  const validate = (part) => part.field.fault(part.fault(part.control.value));
  for (const part of parts) {
    part.control.value = draft[part.name];
    validate(part);
    part.control.addEventListener("input", () => {
      draft[part.name] = part.control.value;
      validate(part);
      showLine();
    });
  }

  const entry = form(() => {
    parts.forEach(validate);
    fill(answer);
    const wrong = entry.querySelector("[aria-invalid]");
    return wrong ? wrong.focus() : busy(go, send);
  }, parts.map((part) => part.field), slot, el("div", {}, go), answer);

  // What has become of it may stand below what one sees of the page.
  async function send() {
    await attempt(slot, store);
    (answer.firstChild ?? slot.firstChild)?.scrollIntoView({ block: "nearest" });
  }

  async function store() {
    const { text, status } = await call("/events", { method: "POST", body: envelope(), signal });
    fill(answer, said(status, JSON.parse(text)));
  }

  // The payload goes out as it was typed: parsing and writing it again might change its numbers.
  function envelope() {
    const members = [];
    if (type.value.trim()) members.push(`"event_type": ${JSON.stringify(type.value.trim())}`);
    if (idempotencyKey.value) members.push(`"idempotency_key": ${JSON.stringify(idempotencyKey.value)}`);
    return `{${[...members, `"payload": ${payload.value}`].join(", ")}}`;
  }

  function showLine() {
    copies.disabled = parts.some((part) => part.fault(part.control.value));
    if (copies.disabled) {
      line.textContent = "Not before it could be sent.";
      return;
    }
    curl = sendLine(location.origin, type.value.trim() || null, compact(parse(payload.value)), idempotencyKey.value);
    line.textContent = curl.length > LONGEST_LINE ? `${curl.slice(0, LONGEST_LINE)}…` : curl;
  }

  showLine();
  root.append(
    viewHead("Send", "An event is on disk once it is answered, and then waits until a consumer polls it."),
    el("div", { class: "halves" }, el("section", { class: "card" }, entry),
      el("section", { class: "card snippet", "aria-labelledby": "with-curl" },
        el("div", { class: "snippet-head" }, el("h3", { id: "with-curl" }, "The same with curl"), copies),
        el("p", { class: "soft small" }, "With your key in the environment: ", el("code", {}, "export INBOX_API_KEY=…")),
        line)));
}

function said(status, event) {
  return el("div", { class: "notice good" },
    el("p", {}, el("strong", {}, status === 201 ? "Stored (201)" : "It was there already (200), and is not stored again"), `. Its id is ${event.id}.`),
    session.may("events:read", "inbox:read") && el("p", {}, el("a", { href: address("events", { event: event.id }) }, "Open it in Events")));
}

function typeFault(text) {
  if (text.trim() === "" || EVENT_TYPE.test(text.trim())) return "";
  return text.trim().length > 128 ? "At most 128 characters." : "Letters, digits and . _ : / - only.";
}

function payloadFault(text) {
  try {
    // The envelope around it is a level, too.
    return parse(text, DEEPEST - 1).kind === "object" ? "" : "Has to be an object: { … }.";
  } catch (error) {
    return error.message;
  }
}

function keyFault(text) {
  return text.length > LONGEST_KEY ? `At most ${LONGEST_KEY} characters.` : "";
}
