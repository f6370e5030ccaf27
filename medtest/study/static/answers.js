// Talks to the server. An answer counts as saved when the server has said so; until then it is sent again.

let seal = "";

export class Ended extends Error {}

async function ask(path, options = {}) {
  const answer = await fetch(path, { credentials: "same-origin", cache: "no-store", ...options });
  if (answer.ok) return answer.json();
  let words = "The server could not answer.";
  try {
    words = (await answer.json()).error || words;
  } catch {
    // not JSON: the words above have to do
  }
  if (answer.status >= 500 || answer.status === 408 || answer.status === 429) throw new Error(words);
  throw new Ended(words);
}

export async function where() {
  const study = await ask("/api/study");
  seal = study.seal;
  return study;
}

export function item(phase, position) {
  return ask(`/api/item/${phase}/${position}`);
}

function requestId() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function post(path, content) {
  return ask(path, {
    method: "POST",
    headers: { "content-type": "application/json", "x-study-seal": seal },
    body: JSON.stringify(content),
  });
}

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

// Does what needs the server until it succeeds; what the server has refused is not tried again.
export async function persist(act, waiting) {
  for (let turn = 0; ; turn += 1) {
    try {
      return await act();
    } catch (problem) {
      if (problem instanceof Ended) throw problem;
      waiting();
      await pause(Math.min(15000, 700 * 2 ** Math.min(turn, 5)));
    }
  }
}

// The same request id goes out each time, so that the server keeps one row however often it arrives.
export function save(answer, waiting) {
  const content = { ...answer, request: requestId() };
  return persist(() => post("/api/answer", content), waiting);
}

export function leave() {
  return post("/leave", {});
}
