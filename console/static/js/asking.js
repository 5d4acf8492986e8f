// Asks a deployment through the console. listener: {words(text), done(facts), problem({problem, hint}), stopped()}; one of the last
// three is called, once, at the end. Aborting the signal closes the connection, and with it the request behind it.
export async function ask(id, question, token, signal, listener) {
  try {
    const answer = await fetch(`/playground/${encodeURIComponent(id)}/chat`, {
      method: "POST",
      headers: { "Content-Type": "application/json", Accept: "text/event-stream, application/problem+json", "X-Form-Token": token },
      body: JSON.stringify(question),
      signal,
    });
    if (!answer.ok) return listener.problem(await refusal(answer));
    for await (const part of parts(answer.body)) {
      if ("text" in part) listener.words(part.text);
      else if ("problem" in part) return listener.problem(part);
      else return listener.done(part);
    }
    return listener.problem({ problem: "The console broke off before the end", hint: "Send it again." });
  } catch (error) {
    if (signal.aborted) return listener.stopped();
    return listener.problem({ problem: "The console does not answer", hint: `Is it still running? (${error.message})` });
  }
}

async function refusal(answer) {
  if (answer.status === 401) return { problem: "You are logged out", hint: "Log in again in another tab, then reload this page." };
  if (answer.status === 413) return { problem: "This conversation is too long for the console", hint: "Begin a new one." };
  try {
    const { detail, hint } = await answer.json();
    return { problem: detail, hint };
  } catch {
    return { problem: `The console answered ${answer.status}`, hint: "Reload the page and try again." };
  }
}

async function* parts(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const events = (rest + value).split("\n\n");
    rest = events.pop();
    for (const event of events) if (event.startsWith("data: ")) yield JSON.parse(event.slice(6));
  }
}
