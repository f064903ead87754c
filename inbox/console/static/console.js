// Signs in with an API key and shows what waits in its inbox. Peeks only: the console never takes an event.
const FOLLOW_MS = 3000;
const KEY = "inbox-key";
const $ = (id) => document.getElementById(id);

async function call(path, { method = "GET", body } = {}) {
  const headers = { Authorization: `Bearer ${sessionStorage.getItem(KEY)}` };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const response = await fetch(path, { method, headers, body });
  const text = await response.text();
  if (!response.ok) {
    const problem = JSON.parse(text);
    const faults = (problem.errors ?? []).map((fault) => ` ${fault.pointer}: ${fault.detail}`).join("");
    throw Object.assign(new Error(`${problem.title}. ${problem.detail}${faults} (request ${problem.request_id})`), {
      status: response.status,
    });
  }
  return JSON.parse(text, keepNumber);
}

// Shows a number as it was sent, 1.0 and 40 digits too, where the browser can.
function keepNumber(_name, value, context) {
  return typeof value === "number" && JSON.rawJSON ? JSON.rawJSON(context.source) : value;
}

function say(text, bad = false) {
  $("message").textContent = text;
  $("message").classList.toggle("bad", bad);
}

// textContent throughout: a payload full of markup is shown, never run.
function row(event) {
  const item = document.createElement("li");
  const head = document.createElement("div");
  head.className = "head";
  const type = document.createElement("strong");
  type.textContent = event.event_type ?? "(no type)";
  const time = document.createElement("time");
  time.dateTime = event.created_at;
  time.textContent = new Date(event.created_at).toLocaleString();
  head.append(type, time);
  const payload = document.createElement("pre");
  payload.textContent = JSON.stringify(event.payload, null, 2);
  item.append(head, payload);
  return item;
}

async function refresh() {
  const events = await call("/inbox?mode=peek&order=newest");
  $("events").replaceChildren(...events.map(row));
  $("empty").hidden = events.length > 0;
}

function show(signedIn) {
  $("sign-in").hidden = signedIn;
  for (const id of ["inbox", "send", "sign-out"]) $(id).hidden = !signedIn;
}

function signOut() {
  sessionStorage.removeItem(KEY);
  show(false);
}

async function signIn() {
  const me = await call("/me");
  $("tenant").textContent = me.tenant_name;
  show(true);
  await refresh();
}

async function attempt(act) {
  try {
    await act();
  } catch (error) {
    if (error.status === 401) signOut();
    say(error.message, true);
  }
}

async function follow() {
  if (!$("inbox").hidden && !document.hidden) await attempt(refresh);
  setTimeout(follow, FOLLOW_MS);
}

$("sign-in").addEventListener("submit", (submit) => {
  submit.preventDefault();
  sessionStorage.setItem(KEY, $("key").value.trim());
  $("key").value = "";
  say("");
  attempt(signIn);
});

$("sign-out").addEventListener("click", () => {
  signOut();
  say("Signed out.");
});

$("send").addEventListener("submit", (submit) => {
  submit.preventDefault();
  attempt(async () => {
    const type = $("type").value.trim();
    const envelope = `{${type ? `"event_type": ${JSON.stringify(type)}, ` : ""}"payload": ${$("payload").value}}`;
    const stored = await call("/events", { method: "POST", body: envelope });
    say(`Stored as ${stored.id}.`);
    await refresh();
  });
});

show(false);
if (sessionStorage.getItem(KEY)) attempt(signIn);
follow();
