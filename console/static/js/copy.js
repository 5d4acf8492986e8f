// Copy buttons. Without the clipboard (a page that came by plain HTTP from another host) a hidden field is copied from.
import { once } from "./once.js";

const SHOWN_MS = 1500;

export function start(root) {
  for (const button of once(root, "[data-copy]", "copy")) {
    button.hidden = false;
    button.addEventListener("click", () => copy(button));
  }
}

async function copy(button) {
  if (!(await put(button.dataset.copy))) return;
  const use = button.querySelector("use");
  const [sheet] = use.getAttribute("href").split("#");
  use.setAttribute("href", `${sheet}#check`);
  button.classList.add("copied");
  clearTimeout(button.copiedUntil);
  button.copiedUntil = setTimeout(() => {
    use.setAttribute("href", `${sheet}#copy`);
    button.classList.remove("copied");
  }, SHOWN_MS);
}

async function put(text) {
  if (navigator.clipboard && window.isSecureContext) {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch {
      // Not allowed: the older way may be.
    }
  }
  const field = document.createElement("textarea");
  field.value = text;
  field.className = "visually-hidden";
  document.body.append(field);
  field.select();
  const done = document.execCommand("copy");
  field.remove();
  return done;
}
