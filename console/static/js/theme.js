// The theme: system, light or dark. The server writes it into the page from a cookie, so nothing flashes.
import { once } from "./once.js";

const YEAR_S = 365 * 24 * 3600;

export function start(root) {
  for (const group of once(root, "[data-theme-switch]", "theme")) {
    group.hidden = false;
    group.addEventListener("click", (event) => {
      const button = event.target.closest("button");
      if (button) choose(button.value);
    });
  }
}

function choose(theme) {
  const secure = location.protocol === "https:" ? "; Secure" : "";
  document.cookie = `roundhouse_theme=${theme}; Path=/; Max-Age=${YEAR_S}; SameSite=Lax${secure}`;
  document.documentElement.dataset.theme = theme;
  for (const button of document.querySelectorAll("[data-theme-switch] button")) {
    button.setAttribute("aria-pressed", String(button.value === theme));
  }
  document.dispatchEvent(new Event("roundhouse:theme"));
}

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  document.dispatchEvent(new Event("roundhouse:theme"));
});
