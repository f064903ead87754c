// What to paste where. docs/how-to/recipes has the same at length, each tried.

import { call } from "../api.js";

const KEY_IN_SHELL = "$INBOX_API_KEY";
const KEY_IN_FORM = "YOUR_KEY";

const bearer = (key) => `-H "Authorization: Bearer ${key ?? KEY_IN_SHELL}"`;
const JSON_BODY = "-H 'Content-Type: application/json'";
const EVENT = '{"event_type": "order.created", "payload": {"order": 1001}}';

const curl = {
  name: "curl",
  words: "For a shell.",
  environment: true,
  parts: ({ url, key }) => [
    { title: "Send an event", text: `curl -sS ${url}/events ${bearer(key)} ${JSON_BODY} -d '${EVENT}'` },
    { title: "Poll", note: "Hands out up to 100 events and marks them delivered: each comes once.", text: `curl -sS ${url}/inbox ${bearer(key)}` },
    {
      title: "Poll and lose nothing",
      note: "Leases events, waits up to 20 seconds for the first, and acknowledges them once they are handled. What is not acknowledged in time comes again. Needs jq.",
      text: `curl -sS '${url}/inbox?mode=lease&wait=20' ${bearer(key)} >events.json\n`
        + "jq -c '.[] | [.event_type, .payload]' events.json\n"
        + `jq -c 'if length > 0 then {receipts: map(.receipt)} else empty end' events.json | while read -r receipts; do\n  curl -sS ${url}/inbox/ack ${bearer(key)} ${JSON_BODY} -d "$receipts"\ndone`,
    },
    { title: "Look at what waits", note: "Changes nothing.", text: `curl -sS '${url}/inbox?mode=peek' ${bearer(key)}` },
  ],
};

const zapier = {
  name: "Zapier",
  words: "Webhooks by Zapier, trigger Retrieve Poll (a paid plan). It remembers which events it has seen, so it gets an address that changes nothing. Zapier has to reach this service by https.",
  parts: ({ url, key }) => [
    { title: "URL", note: "Add &event_type=order.created for one type only.", text: `${url}/events?limit=100` },
    { title: "Basic Auth", note: "The key as user name, anything as password. Where one field asks for both, they are written like this.", text: `${key ?? KEY_IN_FORM}|x` },
    { title: "Deduplication Key", note: "Key stays empty: the answer is an array.", text: "id" },
  ],
};

const make = {
  name: "Make",
  words: "A scenario of four modules on a schedule: HTTP (Make a request), Iterator over its Data, your own modules, and HTTP once more to acknowledge. What fails on the way comes again when its lease is over.",
  parts: ({ url, key }) => [
    { title: "1. HTTP: URL", note: "Method GET, Parse response: yes.", text: `${url}/inbox?mode=lease&limit=50&lease_seconds=3600` },
    { title: "1. HTTP: header X-API-Key", note: "Authentication type API key. The same credentials in module 4.", text: key ?? KEY_IN_FORM },
    { title: "4. HTTP: URL", note: "Method POST, after your own modules.", text: `${url}/inbox/ack` },
    { title: "4. HTTP: JSON body", note: "2 is the Iterator.", text: '{"receipts": ["{{2.receipt}}"]}' },
  ],
};

const n8n = {
  name: "n8n",
  words: "A workflow that leases events every minute, hands them to your own nodes, and acknowledges them at its end.",
  parts: async ({ url, key, signal }) => [
    { title: "Workflow", note: "Save it as n8n.json and choose Import from File in the menu of a new workflow.", text: await workflow(url, signal) },
    { title: "Bearer token", note: "In Poll make a credential of the kind Bearer Auth, and choose it in Acknowledge too. n8n keeps it; it is not in the workflow.", text: key ?? KEY_IN_FORM },
  ],
};

// The recipe's own file, with this address in it.
async function workflow(url, signal) {
  return (await call("/console/n8n.json", { signal })).text.replace("http://127.0.0.1:8080", url);
}

const python = {
  name: "Python",
  words: "With requests: pip install requests.",
  environment: true,
  parts: ({ url, key }) => [
    { title: "Send", text: `${preamble(url, key)}
event = {"event_type": "order.created", "payload": {"order": 1001}}
# The same key again stores nothing twice, so that a retry is harmless.
answer = session.post(f"{url}/events", json=event, headers={"Idempotency-Key": "order-1001"}, timeout=30)
answer.raise_for_status()
print("stored as", answer.json()["id"])
` },
    { title: "Consume", note: "Acknowledges what it has handled. What it has not comes again when its lease is over.", text: `${preamble(url, key)}
poll = session.get(f"{url}/inbox", params={"mode": "lease", "limit": 50, "wait": 20}, timeout=60)
poll.raise_for_status()
receipts = []
for event in poll.json():
    print(event["event_type"], event["payload"])  # your work
    receipts.append(event["receipt"])
if receipts:
    session.post(f"{url}/inbox/ack", json={"receipts": receipts}, timeout=30).raise_for_status()
` },
  ],
};

function preamble(url, key) {
  return `${key ? "" : "import os\n\n"}import requests

url = "${url}"
session = requests.Session()
session.headers["X-API-Key"] = ${key ? `"${key}"` : 'os.environ["INBOX_API_KEY"]'}
`;
}

export const GUIDES = [curl, zapier, make, n8n, python];
