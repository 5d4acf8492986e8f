// Log panes: new lines come as server-sent events and are written as text; reconnecting resumes after the last line.
import { once } from "./once.js";
import { follow } from "./stream.js";

const MOST_LINES = 5000;
const ERROR =
  /\b(?:ERROR|FATAL|CRITICAL)\b|^\s*(?:[Ee]rror|[Ff]atal)\b|\b(?:[Ee]rror|panic):|^Traceback \(|\w(?:Error|Exception)(?::|$)|^E\d{4} /;
const WARNING = /\bWARN(?:ING)?\b|^\s*[Ww]arning\b|\b[Ww]arning:|\wWarning:|^W\d{4} /;

export function start(root) {
  for (const pane of once(root, "[data-log]", "log")) new LogPane(pane);
}

class LogPane {
  constructor(pane) {
    this.pane = pane;
    this.lines = pane.querySelector("[data-log-lines]");
    this.state = pane.querySelector("[data-log-state]");
    this.follow = pane.querySelector("[data-log-follow]");
    this.wrap = pane.querySelector("[data-log-wrap]");
    this.error = pane.querySelector("[data-log-error]");
    this.last = Number(pane.dataset.last);
    this.following = true;
    this.waiting = [];
    this.wrap.hidden = false;
    this.wrap.addEventListener("click", () => this.toggleWrap());
    this.error.addEventListener("click", () => this.showError());
    this.error.hidden = !this.lines.querySelector(".log-error");
    this.follow.addEventListener("click", () => this.setFollowing(!this.following));
    this.lines.addEventListener("scroll", () => this.scrolled());
    if (pane.dataset.stream) this.connect();
    else if (!this.error.hidden) this.showError();
    if (this.error.hidden || pane.dataset.stream) this.toEnd();
  }

  connect() {
    this.follow.hidden = false;
    const close = follow(this.pane.dataset.stream, {
      open: () => this.say("live"),
      lost: () => this.say("connection lost, trying again…"),
      message: (lines) => {
        if (this.pane.isConnected) this.take([lines].flat());
        else close();
      },
      end: () => {
        this.follow.hidden = true;
        this.say("ended");
      },
    }, String(this.last));
  }

  take(lines) {
    for (const line of lines) {
      // A reconnect may repeat what is there.
      if (line.number <= this.last) continue;
      this.last = line.number;
      this.waiting.push(line);
    }
    if (!this.waiting.length || this.drawing) return;
    this.drawing = requestAnimationFrame(() => this.draw());
  }

  draw() {
    this.drawing = undefined;
    this.lines.querySelector(".log-empty")?.remove();
    this.lines.append(...this.waiting.splice(0).map(element));
    // While somebody reads further up nothing is taken away under their eyes, up to twice as many lines.
    const most = this.following ? MOST_LINES : 2 * MOST_LINES;
    while (this.lines.childElementCount > most) this.lines.firstElementChild.remove();
    if (this.error.hidden) this.error.hidden = !this.lines.querySelector(".log-error");
    if (this.following) this.toEnd();
  }

  scrolled() {
    if (this.follow.hidden) return;
    const atEnd = this.lines.scrollTop + this.lines.clientHeight >= this.lines.scrollHeight - 24;
    if (atEnd !== this.following) this.setFollowing(atEnd);
  }

  setFollowing(following) {
    this.following = following;
    this.follow.setAttribute("aria-pressed", String(following));
    const use = this.follow.querySelector("use");
    use.setAttribute("href", `${use.getAttribute("href").split("#")[0]}#${following ? "pause" : "down"}`);
    this.follow.querySelector("span").textContent = following ? "Pause" : "Follow";
    if (following) this.toEnd();
  }

  toggleWrap() {
    const wrapped = this.lines.classList.toggle("log-wrapped");
    this.wrap.setAttribute("aria-pressed", String(wrapped));
    if (this.following && !this.follow.hidden) this.toEnd();
  }

  showError() {
    const line = this.lines.querySelector(".log-error");
    if (!line) return;
    if (!this.follow.hidden) this.setFollowing(false);
    this.lines.querySelector(".log-found")?.classList.remove("log-found");
    line.classList.add("log-found");
    this.lines.scrollTop = line.offsetTop - this.lines.clientHeight / 3;
  }

  toEnd() {
    this.lines.scrollTop = this.lines.scrollHeight;
  }

  say(text) {
    this.state.textContent = text;
  }
}

function element(line) {
  const row = document.createElement("div");
  row.className = `log-line${ERROR.test(line.text) ? " log-error" : WARNING.test(line.text) ? " log-warning" : ""}`;
  const number = document.createElement("span");
  number.className = "log-number";
  number.textContent = line.number;
  const text = document.createElement("span");
  text.className = "log-text";
  text.textContent = line.text;
  row.append(number, text);
  return row;
}
