// Sends an event. Input is validated while it is typed.

import { request, session } from "../api.js";
import { copyButton, eventBody, sendCommand } from "../clipboard.js";
import { eventTypeField, field, form, input, viewHeader } from "../controls.js";
import { el, fill } from "../dom.js";
import { MAX_DEPTH, compact, parseExact } from "../exact_json.js";
import { hashFor } from "../router.js";

const EXAMPLE = '{\n  "order": 1001,\n  "total": 99.90,\n  "customer": "Ada Lovelace"\n}';
const MAX_KEY_LENGTH = 255;
const MAX_COMMAND_LENGTH = 2000;

export function openSend(root, { signal }) {
  const draft = (session.draft ??= { type: "order.created", payload: EXAMPLE, key: "" });
  const type = input({ class: "code" });
  const payload = el("textarea", { class: "input code", rows: 11, spellcheck: "false" });
  const idempotencyKey = input({ class: "code", placeholder: "order-1001" });
  const controls = { type, payload, key: idempotencyKey };
  const fields = [
    eventTypeField(type, "What happened, such as order.created. Optional."),
    field("Payload", payload, { hint: "A JSON object. It is delivered exactly as you send it.", check: payloadError }),
    field("Idempotency key", idempotencyKey, {
      hint: "Optional. Sending the same event with the same key again stores it only once.",
      check: (text) => (text.length > MAX_KEY_LENGTH ? `Use up to ${MAX_KEY_LENGTH} characters.` : ""),
    }),
  ];
  const result = el("div", { class: "slot", role: "status" });
  const command = el("pre", { tabindex: 0, role: "group", "aria-label": "curl command" });
  const copy = copyButton(() => curl);
  let curl = "";

  for (const [name, control] of Object.entries(controls)) {
    control.value = draft[name];
    control.addEventListener("input", () => {
      draft[name] = control.value;
      showCommand();
    });
  }

  async function send() {
    const body = eventBody(type.value.trim(), payload.value, idempotencyKey.value);
    const { text, status } = await request("/events", { method: "POST", body, signal });
    fill(result, successNotice(status, JSON.parse(text)));
    result.firstChild.scrollIntoView({ block: "nearest" });
  }
  const sendForm = form("Send event", send, fields);
  sendForm.append(result);
  sendForm.addEventListener("submit", () => fill(result));

  function showCommand() {
    copy.disabled = fields.filter((each) => each.validate()).length > 0;
    if (copy.disabled) {
      command.textContent = "Fix the errors in the form to get the command.";
      return;
    }
    curl = sendCommand(type.value.trim(), compact(parseExact(payload.value)), idempotencyKey.value);
    command.textContent = curl.length > MAX_COMMAND_LENGTH ? `${curl.slice(0, MAX_COMMAND_LENGTH)}…` : curl;
  }

  showCommand();
  root.append(
    viewHeader("Send", "Send an event to your inbox. Events are stored durably until their retention ends."),
    el("div", { class: "halves" }, el("section", { class: "card" }, sendForm),
      el("section", { class: "card snippet", "aria-labelledby": "with-curl" },
        el("div", { class: "snippet-head" }, el("h3", { id: "with-curl" }, "curl command"), copy),
        el("p", { class: "soft small" }, "Set your key first: ", el("code", {}, "export INBOX_API_KEY=…")),
        command)));
}

function successNotice(status, event) {
  return el("div", { class: "notice good" },
    el("p", {}, el("strong", {}, status === 201 ? "Event stored." : "Event already stored with this idempotency key."), ` ID: ${event.id}`),
    session.hasScope("events:read", "inbox:read") && el("p", {}, el("a", { href: hashFor("events", { event: event.id }) }, "View event")));
}

function payloadError(text) {
  try {
    // The envelope adds one level.
    return parseExact(text, MAX_DEPTH - 1).kind === "object" ? "" : "The payload must be a JSON object: { … }.";
  } catch (error) {
    return error.message;
  }
}
