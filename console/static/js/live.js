// Numbers that live: [data-live] names a stream of samples {"at": …, "values": {key: number}}, [data-live-value] the key.
import { written } from "./formats.js";
import { once } from "./once.js";
import { listen } from "./stream.js";

export function start(root) {
  for (const group of once(root, "[data-live]", "live")) {
    listen(group.dataset.live, group, ({ values }) => {
      for (const element of group.querySelectorAll("[data-live-value]")) {
        const key = element.dataset.liveValue;
        if (!(key in values)) continue;
        element.textContent = written(element.dataset.kind, values[key]);
        const unit = element.nextElementSibling;
        if (unit?.dataset.one) unit.textContent = ` ${values[key] === 1 ? unit.dataset.one : unit.dataset.many}`;
      }
    });
  }
}
