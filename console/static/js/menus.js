// Menus are <details>: Escape, a click elsewhere and "Keep it" close them.
import { once } from "./once.js";

let listening = false;

export function start(root) {
  for (const button of once(root, "[data-menu] [data-close]", "menus")) {
    button.hidden = false;
    button.addEventListener("click", () => close(button.closest("[data-menu]")));
  }
  if (listening) return;
  listening = true;
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    const open = document.activeElement?.closest("[data-menu][open]") ?? document.querySelector("[data-menu][open]");
    if (open) close(open);
  });
  document.addEventListener("click", (event) => {
    for (const menu of document.querySelectorAll("[data-menu][open]")) {
      if (!menu.contains(event.target)) menu.open = false;
    }
  });
}

function close(menu) {
  menu.open = false;
  menu.querySelector("summary").focus();
}
