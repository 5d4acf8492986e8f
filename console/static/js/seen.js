// [data-while-seen]: parts that ask again and again do so only while somebody can see them, and not while somebody points at
// [data-keeps] in or beside them: what is read must not go away.
export function start(root) {
  if (root !== document) return;
  document.addEventListener("htmx:beforeRequest", (event) => {
    const element = event.target;
    if (element.matches("[data-while-seen]") && !isLookedAt(element)) event.preventDefault();
  });
}

function isLookedAt(element) {
  if (document.hidden || element.parentElement.querySelector("[data-keeps]:hover, [data-keeps]:focus-within")) return false;
  const { top, bottom } = element.getBoundingClientRect();
  return bottom >= 0 && top <= window.innerHeight;
}
