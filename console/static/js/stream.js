// One connection per address, however many parts of the page listen to it; closed when the last one has gone.
const streams = new Map();

// listener: {element, data(object), connected(boolean), end()}; all but element may be missing.
export function listen(url, listener) {
  let stream = streams.get(url);
  if (!stream) {
    stream = { source: new EventSource(url), listeners: new Set() };
    streams.set(url, stream);
    const tell = (name, ...values) => {
      for (const each of stream.listeners) {
        if (each.element.isConnected) each[name]?.(...values);
        else forget(url, each);
      }
    };
    stream.source.addEventListener("open", () => tell("connected", true));
    stream.source.addEventListener("error", () => tell("connected", false));
    stream.source.addEventListener("message", (event) => tell("data", JSON.parse(event.data)));
    stream.source.addEventListener("end", () => {
      stream.source.close();
      streams.delete(url);
      tell("end");
    });
  }
  stream.listeners.add(listener);
}

function forget(url, listener) {
  const stream = streams.get(url);
  if (!stream) return;
  stream.listeners.delete(listener);
  if (stream.listeners.size) return;
  stream.source.close();
  streams.delete(url);
}

window.addEventListener("pagehide", () => {
  for (const { source } of streams.values()) source.close();
  streams.clear();
});
window.addEventListener("pageshow", (event) => {
  if (event.persisted) location.reload();
});
