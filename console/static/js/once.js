// Elements within root (itself included) that match, each given only once per purpose.
export function once(root, selector, purpose) {
  const found = [...root.querySelectorAll(selector)];
  if (root instanceof Element && root.matches(selector)) found.unshift(root);
  return found.filter((element) => {
    element.startedFor ??= new Set();
    if (element.startedFor.has(purpose)) return false;
    element.startedFor.add(purpose);
    return true;
  });
}
