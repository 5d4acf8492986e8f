// A part of the page that htmx puts in anew keeps what its reader did to the old one: focus, what is open, how far it is scrolled.
// One in which a button is being pressed stays until it is let go, else the click would be lost: it comes again soon.
const WORTH_KEEPING = "a[href], button, input, select, textarea, summary, [tabindex]";
const kept = new Map();
let listening = false;
let pressed;

export function start() {
  if (listening) return;
  listening = true;
  for (const name of ["htmx:beforeSwap", "htmx:oobBeforeSwap"]) {
    document.addEventListener(name, (event) => {
      const { target } = event.detail;
      if (pressed && target.contains(pressed) && comesAgain(event.detail.requestConfig?.elt)) event.detail.shouldSwap = false;
      else if (target.id) kept.set(target.id, state(target));
    });
  }
  document.addEventListener("pointerdown", ({ target }) => (pressed = target), true);
  for (const name of ["pointerup", "pointercancel"]) {
    document.addEventListener(name, () => setTimeout(() => (pressed = undefined)), true); // after the click
  }
  document.addEventListener("htmx:afterSwap", () => {
    for (const [id, before] of kept) {
      const part = document.getElementById(id);
      if (part) restore(part, before);
    }
    kept.clear();
  });
}

function comesAgain(asking) {
  return asking?.getAttribute("hx-trigger")?.includes("every");
}

function state(part) {
  const focused = part.contains(document.activeElement) ? document.activeElement : null;
  const elements = named(part);
  return {
    focused: [...elements].find(([, element]) => element === focused)?.[0],
    open: [...elements].filter(([, element]) => element.localName === "summary").map(([key, { parentElement }]) => [key, parentElement.open]),
    scrolled: [...elements].map(([key, { scrollLeft, scrollTop }]) => [key, scrollLeft, scrollTop]).filter(([, left, top]) => left || top),
  };
}

function restore(part, { focused, open, scrolled }) {
  const elements = named(part);
  for (const [key, isOpen] of open) {
    if (elements.has(key)) elements.get(key).parentElement.open = isOpen;
  }
  for (const [key, left, top] of scrolled) elements.get(key)?.scrollTo({ left, top, behavior: "instant" });
  if (focused !== undefined && !part.contains(document.activeElement)) elements.get(focused)?.focus({ preventScroll: true });
}

// Elements by what they are, so that one is found again although others came before it; those that are alike are counted.
function named(part) {
  const found = new Map();
  const counts = new Map();
  for (const element of part.querySelectorAll(WORTH_KEEPING)) {
    const attributes = ["id", "name", "href", "aria-label", "formaction"].map((name) => element.getAttribute(name));
    const words = ["summary", "button"].includes(element.localName) ? element.textContent.trim() : "";
    const key = JSON.stringify([element.localName, attributes, words]);
    const count = counts.get(key) ?? 0;
    counts.set(key, count + 1);
    found.set(`${key}${count}`, element);
  }
  return found;
}
