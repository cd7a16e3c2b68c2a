// Keeps a page up to date, and moves between rows by keys. Pages are complete without it.
"use strict";

const markup = window.trustedTypes
  ? window.trustedTypes.createPolicy("hone", { createHTML: (text) => text })
  : { createHTML: (text) => text };
const content = document.getElementById("content");
const live = document.getElementById("live");
const pauseMs = 1000;
const maxPauseMs = 10000;

// Replaces the contents of the page by those of the same address, and keeps what the reader has
// unfolded.
async function refresh() {
  const response = await fetch(location.href, { headers: { Accept: "text/html" } });
  if (!response.ok) return false;
  const made = new DOMParser().parseFromString(
    markup.createHTML(await response.text()), "text/html");
  const open = [...content.querySelectorAll("details")].map((one) => one.open);
  const fresh = made.getElementById("content");
  const folds = fresh.querySelectorAll("details");
  if (folds.length === open.length) folds.forEach((one, i) => { one.open = open[i]; });
  content.replaceChildren(...fresh.childNodes);
  const state = made.getElementById("live");
  live.title = state.title;
  return true;
}

async function follow() {
  let pause = pauseMs;
  for (;;) {
    await new Promise((wake) => setTimeout(wake, pause));
    if (document.hidden) continue;
    try {
      const response = await fetch("/api/changes");
      if (!response.ok) throw new Error(response.statusText);
      const now = await response.json();
      if (now.stamp !== live.title) await refresh();
      if (live.textContent !== now.state) live.textContent = now.state;
      pause = pauseMs;
    } catch {
      live.textContent = "The program `hone ui` does not answer; this page shows what it said last.";
      pause = Math.min(2 * pause, maxPauseMs);
    }
  }
}

// The links that the keys j and k move between: the first of each row.
function rows() {
  return [...content.querySelectorAll("tbody tr")].map((row) => row.querySelector("a[href]"))
    .filter((link) => link !== null && link.checkVisibility());
}

function move(by) {
  const links = rows();
  if (links.length === 0) return;
  const at = links.indexOf(document.activeElement);
  const next = at < 0 ? (by > 0 ? 0 : links.length - 1) : at + by;
  links[Math.max(0, Math.min(links.length - 1, next))].focus();
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.matches("input, select, textarea")) return;
  if (event.key === "/") document.getElementById("find").focus();
  else if (event.key === "j") move(1);
  else if (event.key === "k") move(-1);
  else return;
  event.preventDefault();
});

follow();
