// The playground: asks one deployment or two, shows what they say as they say it, and keeps the conversation in this tab.
import { ask } from "./asking.js";
import { duration, grouped, number } from "./formats.js";

const REASONS = { stop: "ended by itself", length: "cut at the limit" };
const PARAMETERS = ["system", "temperature", "max_tokens", "top_p", "top_k", "seed", "stop"];
const NEAR_END = 48;

class Playground {
  constructor(form) {
    this.form = form;
    this.key = `roundhouse:playground:${form.dataset.key}`;
    this.template = form.querySelector("template[data-turn]");
    this.list = form.querySelector("[data-turns]");
    this.nothing = form.querySelector("[data-nothing]");
    this.said = form.querySelector("[data-said]");
    this.prompt = form.elements.prompt;
    [this.send, this.stop, this.clear] = ["send", "stop", "clear"].map((name) => form.querySelector(`[data-${name}]`));
    this.asked = [...this.template.content.querySelectorAll("[data-answer]")].map((each) => each.dataset.answer);
    this.turns = JSON.parse(form.elements.conversation.value || "[]");
    // What this script sends is no form: the button says what is going on by itself.
    this.send.removeAttribute("data-busy");
    form.querySelector("[data-keys]").hidden = false;
    if (this.turns.length) this.keep();
    else this.restore();
    this.clear.hidden = !this.turns.length;
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.begin();
    });
    form.addEventListener("change", () => this.keep());
    this.stop.addEventListener("click", () => this.abort());
    this.clear.addEventListener("click", () => this.forget());
    this.prompt.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      this.begin();
    });
    document.addEventListener("keydown", (event) => {
      if (event.key === "Escape" && this.aborting) this.abort();
    });
    window.addEventListener("pagehide", () => this.abort());
    if (!this.prompt.disabled) this.prompt.focus({ preventScroll: true });
    this.toEnd();
  }

  async begin() {
    if (this.aborting || this.send.disabled || !this.form.reportValidity()) return;
    const prompt = this.prompt.value;
    if (!prompt.trim()) return;
    const turn = { prompt, answers: Object.fromEntries(this.asked.map((id) => [id, { text: "" }])) };
    const before = [...this.turns];
    this.turns.push(turn);
    const element = this.show(turn);
    this.prompt.value = "";
    this.toEnd();
    this.aborting = new AbortController();
    this.busy(true);
    await Promise.all(this.asked.map((id) => this.answer(id, before, turn, element)));
    this.aborting = undefined;
    this.busy(false);
    this.keep();
    this.said.textContent = this.asked.map((id) => spoken(element, id, turn.answers[id])).join(" ");
  }

  async answer(id, before, turn, element) {
    const place = element.querySelector(`[data-answer="${CSS.escape(id)}"]`);
    const shown = turn.answers[id];
    const text = place.querySelector("[data-text]");
    const node = text.appendChild(document.createTextNode(""));
    text.classList.add("answer-waiting");
    const question = { messages: history(before, id, turn.prompt), parameters: this.parameters() };
    const asked = performance.now();
    await ask(id, question, this.form.elements.form_token.value, this.aborting.signal, {
      words: (words) => {
        shown.ttft_s ??= (performance.now() - asked) / 1000;
        const follow = this.atEnd();
        text.classList.remove("answer-waiting");
        shown.text += words;
        node.appendData(words);
        if (follow) this.toEnd();
      },
      done: (done) => { shown.done = done; },
      problem: (problem) => { shown.problem = problem; },
      stopped: () => { shown.stopped = true; },
    });
    const follow = this.atEnd();
    fill(place, shown);
    if (follow) this.toEnd();
  }

  show(turn) {
    const element = this.template.content.firstElementChild.cloneNode(true);
    element.querySelector("[data-prompt]").textContent = turn.prompt;
    for (const place of element.querySelectorAll("[data-answer]")) {
      const shown = turn.answers[place.dataset.answer];
      if (shown) fill(place, shown);
    }
    this.nothing.hidden = true;
    this.list.append(element);
    return element;
  }

  parameters() {
    const field = (name) => this.form.elements[name].value.trim();
    const given = { system: field("system"), stop: this.form.elements.stop.value.split("\n").filter(Boolean) };
    for (const name of ["temperature", "max_tokens", "top_p", "top_k", "seed"]) {
      // A seed may have more digits than a number here can hold: it goes as the text that was typed.
      if (field(name)) given[name] = name === "seed" ? field(name) : Number(field(name));
    }
    return given;
  }

  busy(busy) {
    this.send.disabled = busy;
    this.stop.hidden = !busy;
    this.clear.hidden = busy || !this.turns.length;
    if (!busy && (document.activeElement === this.stop || document.activeElement === document.body)) this.prompt.focus();
  }

  abort() {
    this.aborting?.abort();
  }

  forget() {
    this.turns = [];
    for (const turn of this.list.querySelectorAll(".turn")) turn.remove();
    this.nothing.hidden = false;
    this.clear.hidden = true;
    this.keep();
    this.prompt.focus();
  }

  keep() {
    if (this.aborting) return;
    this.form.elements.conversation.value = JSON.stringify(this.turns);
    const fields = Object.fromEntries(PARAMETERS.map((name) => [name, this.form.elements[name].value]));
    try {
      sessionStorage.setItem(this.key, JSON.stringify({ turns: this.turns, fields }));
    } catch {
      // Too long for this tab's storage, or not allowed: it lives as long as the page.
    }
  }

  restore() {
    const kept = JSON.parse(sessionStorage.getItem(this.key) ?? "null");
    if (!kept) return;
    this.turns = kept.turns;
    for (const [name, value] of Object.entries(kept.fields)) this.form.elements[name].value = value;
    this.form.elements.conversation.value = JSON.stringify(this.turns);
    for (const turn of this.turns) this.show(turn);
  }

  atEnd() {
    return this.list.scrollTop + this.list.clientHeight >= this.list.scrollHeight - NEAR_END;
  }

  toEnd() {
    this.list.scrollTop = this.list.scrollHeight;
  }
}

function history(turns, id, prompt) {
  const said = turns.filter((turn) => turn.answers[id]?.text);
  const messages = said.flatMap((turn) => [
    { role: "user", content: turn.prompt },
    { role: "assistant", content: turn.answers[id].text },
  ]);
  return [...messages, { role: "user", content: prompt }];
}

function fill(place, { text, done, problem, stopped, ttft_s: ttft }) {
  const words = place.querySelector("[data-text]");
  words.classList.remove("answer-waiting");
  words.textContent = text;
  if (problem) {
    place.querySelector("[data-problem]").hidden = false;
    place.querySelector("[data-problem-text]").textContent = `${problem.problem}. ${problem.hint ?? ""}`;
  }
  if (!done && !stopped) return;
  const facts = {
    ttft: written(done?.ttft_s ?? ttft, duration),
    rate: written(done?.tokens_per_s, number),
    tokens: written(done?.tokens, count),
    prompt: written(done?.prompt_tokens, count) + (done?.cached_tokens ? ` (${count(done.cached_tokens)} cached)` : ""),
    reason: stopped ? "stopped by you" : REASONS[done.finish_reason] ?? done.finish_reason,
  };
  for (const element of place.querySelectorAll("[data-fact]")) {
    element.textContent = facts[element.dataset.fact];
    // Whoever stops an answer is told no counts: they come with its end.
    element.parentElement.hidden = stopped && facts[element.dataset.fact] === "—";
  }
  place.querySelector("[data-facts]").hidden = false;
}

function count(value) {
  return grouped(value, 0);
}

function written(value, write) {
  return value === null || value === undefined ? "—" : write(value);
}

function spoken(element, id, { done, problem, stopped }) {
  const name = element.querySelector(`[data-answer="${CSS.escape(id)}"] .answer-name`).textContent;
  if (problem) return `${name}: ${problem.problem}.`;
  return stopped ? `${name} was stopped.` : `${name} has answered${done?.tokens ? ` in ${done.tokens} tokens` : ""}.`;
}

const narrow = window.matchMedia("(max-width: 1099px)");
for (const details of document.querySelectorAll("[data-parameters]")) details.open = !narrow.matches;
for (const choice of document.querySelectorAll("[data-playground-choice]")) {
  choice.querySelector("[data-playground-open]").hidden = true;
  choice.addEventListener("change", () => choice.requestSubmit());
}
for (const form of document.querySelectorAll("[data-playground]")) new Playground(form);
