// A form that was sent says so at once, and is not sent twice.
let listening = false;

export function start() {
  if (listening) return;
  listening = true;
  document.addEventListener("submit", (event) => {
    const button = event.submitter?.matches("[data-busy]") ? event.submitter : event.target.querySelector("[data-busy]");
    if (!button || event.defaultPrevented) return;
    // After the browser took the form's values: a disabled button's own value would be missing.
    setTimeout(() => busy(button), 0);
  });
  document.addEventListener("htmx:beforeRequest", (event) => {
    const { elt, requestConfig } = event.detail;
    const sent = requestConfig.triggeringEvent?.type === "submit";
    const button = sent && (requestConfig.triggeringEvent.submitter ?? elt).closest("form")?.querySelector("[data-busy]");
    if (button) busy(button);
  });
  document.addEventListener("htmx:afterRequest", (event) => {
    for (const button of event.target.querySelectorAll?.("[data-busy]:disabled") ?? []) idle(button);
  });
  // Back to a page that the browser kept as it was.
  window.addEventListener("pageshow", (event) => {
    if (event.persisted) for (const button of document.querySelectorAll("[data-busy]:disabled")) idle(button);
  });
}

function busy(button) {
  const label = button.querySelector("span") ?? button;
  button.dataset.idle = label.textContent;
  label.textContent = button.dataset.busy;
  button.disabled = true;
}

function idle(button) {
  if (button.dataset.idle === undefined) return;
  (button.querySelector("span") ?? button).textContent = button.dataset.idle;
  button.disabled = false;
}
