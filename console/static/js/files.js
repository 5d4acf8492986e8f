// Files that are too large together are refused before they are sent: the server would hang up on them.
import { once } from "./once.js";

export function start(root) {
  for (const field of once(root, "input[type='file'][data-most-bytes]", "files")) {
    field.addEventListener("change", () => {
      const size = [...field.files].reduce((sum, file) => sum + file.size, 0);
      const most = Number(field.dataset.mostBytes);
      const mib = (bytes) => `${(bytes / 2 ** 20).toFixed(1)} MiB`;
      field.setCustomValidity(size > most ? `These are ${mib(size)}, and at most ${mib(most)} are taken at once.` : "");
      field.reportValidity();
    });
  }
}
