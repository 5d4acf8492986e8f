// Every page's scripts. Each module has start(root), which may be called again for parts that htmx puts in.
import * as theme from "./theme.js";
import * as time from "./time.js";
import * as copy from "./copy.js";
import * as menus from "./menus.js";
import * as keep from "./keep.js";
import * as submit from "./submit.js";
import * as log from "./log.js";
import * as live from "./live.js";
import * as chart from "./chart.js";
import * as seen from "./seen.js";
import * as files from "./files.js";

const modules = [theme, time, copy, menus, keep, submit, log, live, chart, seen, files];

for (const module of modules) module.start(document);
document.addEventListener("htmx:load", (event) => {
  if (event.detail.elt === document.body) return;
  for (const module of modules) module.start(event.detail.elt);
});
