// What the pages do beyond HTML: they keep themselves up to date, and listen to keys. Everything works without it.
"use strict";

const main = document.getElementById("main");
const page = main.dataset.page;
const part = document.getElementById("part");
const live = document.getElementById("live");

// Ages

function span(seconds) {
  const units = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
  const at = units.findIndex(([size]) => seconds >= size);
  const [size, name] = units[at < 0 ? 3 : at], rest = seconds % size, [smaller, less] = units[Math.min(at + 1, 3)];
  const more = size >= 3600 && rest >= smaller ? ` ${Math.floor(rest / smaller)} ${less}` : "";
  return `${Math.floor(seconds / size)} ${name}${more}`;
}

function age(root) {
  for (const time of root.querySelectorAll("time[title]")) {
    const seconds = (Date.now() - Date.parse(time.dateTime)) / 1000;
    const words = seconds >= 0 ? `${span(seconds)} ago` : `in ${span(-seconds)}`;
    if (time.textContent !== words) time.textContent = words;
  }
}

// Copying

function addCopy(root) {
  for (const pre of root.querySelectorAll("pre.copyable")) {
    if (pre.querySelector(".copy") || !navigator.clipboard) continue;
    const text = pre.textContent;
    const button = document.createElement("button");
    button.type = "button";
    button.className = "copy";
    button.textContent = "Copy";
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
      setTimeout(() => { button.textContent = "Copy"; }, 1500);
    });
    pre.prepend(button);
  }
}

// Keeping up to date: the part of the page that changes is fetched anew. What is being typed is never touched.

let fetching = false, again = false;

async function refresh() {
  if (fetching) { again = true; return; }
  fetching = true;
  try {
    do {
      again = false;
      const asked = await fetch(location.href, {headers: {"x-gatewright-part": part.dataset.part}});
      if (asked.status === 401) { say("signed out: reload", false); return; }
      if (!asked.ok) { say("not up to date", false); return; }
      show(await asked.text());
    } while (again);
  } catch {
    say("not up to date", false);
  } finally {
    fetching = false;
  }
}

function show(text) {
  const chosen = part.querySelector("tr.chosen")?.dataset.gate;
  const known = new Set([...part.querySelectorAll("tr[data-gate]")].map((row) => row.dataset.gate));
  const focused = part.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
  const open = new Set([...part.querySelectorAll("details[open] > summary")].map((summary) => summary.textContent));
  const was = part.querySelector(".standing")?.dataset.state;
  part.replaceChildren(...new DOMParser().parseFromString(text, "text/html").body.childNodes);
  for (const row of part.querySelectorAll("tr[data-gate]")) {
    if (row.dataset.gate === chosen) row.classList.add("chosen");
    if (!known.has(row.dataset.gate)) row.classList.add("fresh");
  }
  for (const summary of part.querySelectorAll("details > summary")) {
    if (open.has(summary.textContent)) summary.parentElement.open = true;
  }
  if (focused) [...part.querySelectorAll("a[href]")].find((link) => link.getAttribute("href") === focused)?.focus();
  age(part);
  addCopy(part);
  title();
  if (page === "gate") standing(was);
}

function title() {
  const count = part?.querySelector("[data-open]")?.dataset.open;
  if (page === "list" && count !== undefined) {
    document.title = document.title.replace(/^(\(\d+\) )?/, count === "0" ? "" : `(${count}) `);
  }
}

function standing(was) {
  const now = part.querySelector(".standing");
  const form = document.getElementById("answer");
  if (!form || now.dataset.state === was) return;
  if (now.dataset.state !== "open") {
    for (const button of form.querySelectorAll("button")) button.disabled = true;
    form.closest("section").classList.add("gone");
    const words = document.createElement("p");
    words.className = "fault";
    words.setAttribute("role", "alert");
    words.textContent = "The gate has closed while this page was open; see above. What you typed is still here, and cannot be sent.";
    form.before(words);
    document.querySelector(".gate-head .state").replaceWith(Object.assign(document.createElement("span"), {
      className: `state ${now.dataset.state}`, textContent: now.dataset.state,
    }));
  }
}

// A browser opens few connections to one server, so of several pages one listens and tells the others.

const others = "BroadcastChannel" in window ? new BroadcastChannel("gatewright-inbox") : null;
let version = part?.querySelector("[data-version]")?.dataset.version || "";

function changed(event) {
  say("live", true);
  if (String(event.version) === version) return;
  const ours = page === "list" || version === "" || !event.gates || event.gates.some(([run, id]) =>
    run === (part.dataset.run || part.closest("[data-run]").dataset.run)
    && (page === "run" || id === part.closest("[data-id]").dataset.id));
  version = String(event.version);
  if (ours) refresh();
}

function say(words, well) {
  live.hidden = false;
  live.classList.toggle("off", !well);
  if (live.textContent !== words) live.textContent = words;
}

function listen() {
  return new Promise((resolve) => {
    const source = new EventSource("/inbox/events");
    source.addEventListener("message", (message) => {
      const event = JSON.parse(message.data);
      changed(event);
      others?.postMessage(event);
    });
    source.addEventListener("error", () => {
      say("not connected", false);
      others?.postMessage(null);
      if (source.readyState === EventSource.CLOSED) resolve();
    });
  });
}

async function lead() {
  for (;;) {
    await listen();
    await new Promise((resolve) => setTimeout(resolve, 3000));
  }
}

if (part) {
  others?.addEventListener("message", ({data}) => (data ? changed(data) : say("not connected", false)));
  if (navigator.locks && others) navigator.locks.request("gatewright-inbox", lead);
  else lead();
  document.addEventListener("visibilitychange", () => { if (!document.hidden) refresh(); });
  window.addEventListener("pageshow", (event) => { if (event.persisted) refresh(); });
}

// Keys

const keys = document.getElementById("keys");
const keysButton = document.getElementById("keys-button");
keysButton.hidden = false;
keysButton.addEventListener("click", () => keys.showModal());

function rows() { return [...document.querySelectorAll("table.list tbody tr.row")]; }

function choose(step) {
  const all = rows();
  if (!all.length) return;
  const at = all.findIndex((row) => row.classList.contains("chosen"));
  const next = all[at < 0 ? (step > 0 ? 0 : all.length - 1) : Math.min(Math.max(at + step, 0), all.length - 1)];
  all[at]?.classList.remove("chosen");
  next.classList.add("chosen");
  next.querySelector("a").focus({preventScroll: true});
  next.scrollIntoView({block: "nearest"});
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const typing = event.target.closest("input:not([type=radio], [type=checkbox]), textarea, select");
  if (event.key === "Escape" && typing) { typing.blur(); return; }
  if (typing || keys.open) return;
  const does = {
    j: () => choose(1),
    k: () => choose(-1),
    "/": () => document.getElementById("q")?.focus(),
    "?": () => keys.showModal(),
    a: () => document.querySelector("#answer .field input, #answer .field textarea, #answer input:not([type=hidden]), #answer textarea")?.focus(),
    u: () => document.getElementById("back")?.click(),
    Enter: () => (event.target === document.body || event.target === main) && document.querySelector("tr.chosen a")?.click(),
  }[event.key];
  if (!does) return;
  if (event.key !== "Enter") event.preventDefault();
  does();
});

// Once sent, it is not sent again by a second press; the page that comes back has buttons that work.

document.addEventListener("submit", (event) => {
  if (event.target.dataset.sent) event.preventDefault();
  event.target.dataset.sent = "yes";
});
window.addEventListener("pageshow", () => { for (const form of document.forms) delete form.dataset.sent; });

age(document);
setInterval(() => age(document), 5000);
addCopy(document);
title();
if (location.hash === "#notice") document.getElementById("notice")?.focus();
