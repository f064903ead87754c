// Snippets for clients, with this service's URL filled in. docs/how-to/recipes explains each in full.

import { request, session } from "../api.js";
import { supersedingSignals } from "../async.js";
import { copyButton } from "../clipboard.js";
import { button, checkbox, viewHeader } from "../controls.js";
import { el, fill, newId } from "../dom.js";
import { alertSlot, runOrReport } from "../messages.js";

export function openConnect(root, { signal }) {
  const nextSignal = supersedingSignals(signal);
  const slot = alertSlot();
  const panel = el("div", { class: "stack", role: "tabpanel", id: newId(), tabindex: 0 });
  const showKey = checkbox("Show my API key");
  let selected = GUIDES[0];
  showKey.box.addEventListener("change", fillPanel);

  const tabs = GUIDES.map((guide) => el("button", {
    type: "button", role: "tab", id: newId(), "aria-controls": panel.id, onclick: () => select(guide),
  }, guide.name));
  const list = el("div", { class: "tabs", role: "tablist", "aria-label": "Clients", onkeydown: moveWithArrows }, tabs);

  function select(guide) {
    selected = guide;
    tabs.forEach((tab, index) => {
      const isSelected = GUIDES[index] === guide;
      tab.setAttribute("aria-selected", String(isSelected));
      tab.tabIndex = isSelected ? 0 : -1;
      if (isSelected) panel.setAttribute("aria-labelledby", tab.id);
    });
    fillPanel();
  }

  function moveWithArrows(event) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const next = (GUIDES.indexOf(selected) + step + GUIDES.length) % GUIDES.length;
    event.preventDefault();
    select(GUIDES[next]);
    tabs[next].focus();
  }

  async function fillPanel() {
    const runSignal = nextSignal();
    const key = showKey.box.checked ? session.key : null;
    // Clears the panel before loading: it may show the key.
    fill(panel, el("p", { class: "soft" }, selected.description, selected.environment && !key
      ? [" First, set your key: ", el("code", {}, "export INBOX_API_KEY=…")] : []));
    const loaded = await runOrReport(slot, async () => {
      panel.append(...(await selected.parts({ url: location.origin, key, signal: runSignal })).map(snippet));
    });
    if (!loaded && !runSignal.aborted) panel.append(button("Try again", () => (panel.focus(), fillPanel())));
  }

  root.append(
    viewHeader("Connect", "Connect your tools and programs to this service. Create a separate key for each one under Keys.", showKey),
    list, slot, panel,
    el("p", { class: "faint small" }, "See the ", el("a", { href: "/docs" }, "API docs"), " for all endpoints, and ",
      el("a", { href: "/problems" }, "Problems"), " for all errors."));
  select(GUIDES[0]);
}

function snippet({ title, text, note }) {
  const id = newId();
  return el("section", { class: "card snippet", "aria-labelledby": id },
    el("div", { class: "snippet-head" }, el("h3", { id }, title), copyButton(() => text, { describedBy: id })),
    note && el("p", { class: "soft small" }, note),
    el("pre", { tabindex: 0, role: "group", "aria-labelledby": id }, text));
}

const KEY_IN_FORM = "YOUR_KEY";

const bearer = (key) => `-H "Authorization: Bearer ${key ?? "$INBOX_API_KEY"}"`;
const JSON_BODY = "-H 'Content-Type: application/json'";
const EVENT = '{"event_type": "order.created", "payload": {"order": 1001}}';

const curl = {
  name: "curl",
  description: "Run these in a shell.",
  environment: true,
  parts: ({ url, key }) => [
    { title: "Send an event", text: `curl -sS ${url}/events ${bearer(key)} ${JSON_BODY} -d '${EVENT}'` },
    { title: "Poll", note: "Returns up to 100 events and marks them delivered. Each event is returned once.", text: `curl -sS ${url}/inbox ${bearer(key)}` },
    {
      title: "Poll with leases",
      note: "Waits up to 20 seconds for events, leases them, and acknowledges them after processing. Events that are not acknowledged are delivered again when their lease expires. Requires jq.",
      text: `curl -sS '${url}/inbox?mode=lease&wait=20' ${bearer(key)} >events.json\n`
        + "jq -c '.[] | [.event_type, .payload]' events.json\n"
        + `jq -c 'if length > 0 then {receipts: map(.receipt)} else empty end' events.json | while read -r receipts; do\n  curl -sS ${url}/inbox/ack ${bearer(key)} ${JSON_BODY} -d "$receipts"\ndone`,
    },
    { title: "Peek", note: "Returns undelivered events without changing them.", text: `curl -sS '${url}/inbox?mode=peek' ${bearer(key)}` },
  ],
};

const zapier = {
  name: "Zapier",
  description: "Use the Retrieve Poll trigger of Webhooks by Zapier (paid plans). Zapier remembers which events it has seen, so use an endpoint that does not change events. Zapier must be able to reach this service over HTTPS.",
  parts: ({ url, key }) => [
    { title: "URL", note: "To poll a single event type, append &event_type=order.created.", text: `${url}/events?limit=100` },
    { title: "Basic Auth", note: "User name: your API key. Password: any text. If there is a single field, separate them with | as shown.", text: `${key ?? KEY_IN_FORM}|x` },
    { title: "Deduplication Key", note: "Leave Key empty: the response is an array.", text: "id" },
  ],
};

const make = {
  name: "Make",
  description: "Build a scheduled scenario with four steps: HTTP (Make a request), an Iterator over its Data, your own modules, and a second HTTP module that acknowledges. If a run fails, its events are delivered again when their lease expires.",
  parts: ({ url, key }) => [
    { title: "1. HTTP: URL", note: "Method: GET. Parse response: Yes.", text: `${url}/inbox?mode=lease&limit=50&lease_seconds=3600` },
    { title: "1. HTTP: header X-API-Key", note: "Authentication type: API key. Use the same credentials in module 4.", text: key ?? KEY_IN_FORM },
    { title: "4. HTTP: URL", note: "Method: POST. Place it after your own modules.", text: `${url}/inbox/ack` },
    { title: "4. HTTP: JSON body", note: "2 is the number of the Iterator module.", text: '{"receipts": ["{{2.receipt}}"]}' },
  ],
};

const n8n = {
  name: "n8n",
  description: "This workflow leases events every minute, passes them to your nodes, and acknowledges them at the end.",
  parts: async ({ url, key, signal }) => [
    { title: "Workflow", note: "Save it as n8n.json, then choose Import from File in the menu of a new workflow.", text: (await request("/console/n8n.json", { signal })).text.replace("http://127.0.0.1:8080", url) },
    { title: "Bearer token", note: "In the Poll node, create a Bearer Auth credential, and select it in the Acknowledge node too. n8n stores it outside the workflow.", text: key ?? KEY_IN_FORM },
  ],
};

const python = {
  name: "Python",
  description: "Requires the requests package: pip install requests.",
  environment: true,
  parts: ({ url, key }) => [
    { title: "Send an event", text: `${pythonSetup(url, key)}
event = {"event_type": "order.created", "payload": {"order": 1001}}
# With an idempotency key, a retry does not store the event twice.
response = session.post(f"{url}/events", json=event, headers={"Idempotency-Key": "order-1001"}, timeout=30)
response.raise_for_status()
print("stored as", response.json()["id"])
` },
    { title: "Consume events", note: "Acknowledges events after processing them. Other events are delivered again when their lease expires.", text: `${pythonSetup(url, key)}
poll = session.get(f"{url}/inbox", params={"mode": "lease", "limit": 50, "wait": 20}, timeout=60)
poll.raise_for_status()
receipts = []
for event in poll.json():
    print(event["event_type"], event["payload"])  # your code here
    receipts.append(event["receipt"])
if receipts:
    session.post(f"{url}/inbox/ack", json={"receipts": receipts}, timeout=30).raise_for_status()
` },
  ],
};

function pythonSetup(url, key) {
  return `${key ? "" : "import os\n\n"}import requests

url = "${url}"
session = requests.Session()
session.headers["X-API-Key"] = ${key ? `"${key}"` : 'os.environ["INBOX_API_KEY"]'}
`;
}

const GUIDES = [curl, zapier, make, n8n, python];
