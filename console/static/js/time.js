// Keeps relative times and running durations current.
import { duration, relative } from "./formats.js";

const EVERY_MS = 1000;
let ticking = false;

export function start() {
  if (ticking) return;
  ticking = true;
  setInterval(tick, EVERY_MS);
}

function tick() {
  if (document.hidden) return;
  const now = Date.now();
  for (const element of document.querySelectorAll("time[data-relative]")) {
    write(element, relative(new Date(element.dateTime), now));
  }
  for (const element of document.querySelectorAll("[data-elapsed]")) {
    write(element, duration(Math.max(0, Math.floor((now - new Date(element.dataset.elapsed)) / 1000))));
  }
}

function write(element, text) {
  if (element.textContent !== text) element.textContent = text;
}
