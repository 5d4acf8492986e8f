// Server-sent events: connections that come again, and one connection per address for samples.
const FIRST_WAIT_MS = 1000;
const LONGEST_WAIT_MS = 30000;
const open = new Set();
const streams = new Map();

// Follow a stream until it says "end"; on: {message, open, lost, end}; after: the id of the last event that is known.
// A page that nobody looks at holds no connection: browsers open six to a server, whatever the number of tabs. Who looks again
// gets what has come meanwhile. Returns what closes it.
export function follow(url, on, after = "") {
  let last = after;
  let source;
  let timer;
  let wait = FIRST_WAIT_MS;
  const pause = () => {
    clearTimeout(timer);
    source?.close();
    source = undefined;
  };
  const close = () => {
    pause();
    document.removeEventListener("visibilitychange", look);
    open.delete(close);
  };
  const look = () => {
    if (document.hidden) pause();
    else if (!source) begin();
  };
  const begin = () => {
    const joint = url.includes("?") ? "&" : "?";
    source = new EventSource(last === "" ? url : `${url}${joint}after=${encodeURIComponent(last)}`);
    source.addEventListener("open", () => {
      wait = FIRST_WAIT_MS;
      on.open?.();
    });
    source.addEventListener("message", (event) => {
      if (event.lastEventId) last = event.lastEventId;
      on.message(JSON.parse(event.data));
    });
    source.addEventListener("end", () => {
      close();
      on.end?.();
    });
    source.addEventListener("error", () => {
      on.lost?.();
      // The browser comes again by itself, unless something else than a stream answered: a proxy of a console that restarts.
      if (source?.readyState !== EventSource.CLOSED) return;
      timer = setTimeout(begin, wait);
      wait = Math.min(2 * wait, LONGEST_WAIT_MS);
    });
  };
  open.add(close);
  document.addEventListener("visibilitychange", look);
  look();
  return close;
}

// Samples for a part of the page: data(sample), as long as its element is there.
export function listen(url, element, data) {
  let stream = streams.get(url);
  if (!stream) {
    stream = { listeners: new Map() };
    streams.set(url, stream);
    stream.close = follow(url, {
      message: (sample) => {
        for (const [each, tell] of stream.listeners) {
          if (each.isConnected) tell(sample);
          else stream.listeners.delete(each);
        }
        if (stream.listeners.size) return;
        stream.close();
        streams.delete(url);
      },
      end: () => streams.delete(url),
    });
  }
  stream.listeners.set(element, data);
}

window.addEventListener("pagehide", () => {
  for (const close of [...open]) close();
});
window.addEventListener("pageshow", (event) => {
  if (event.persisted) location.reload();
});
