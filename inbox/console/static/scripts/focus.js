// Where the keyboard is.

export function topmostDialog() {
  return [...document.querySelectorAll("dialog:modal")].at(-1) ?? null;
}

// What had the focus is gone, so that the next key would begin at the top of the page: it goes on nearby instead.
export function keepFocus() {
  if (document.activeElement !== document.body) return;
  const near = topmostDialog()?.querySelector(".drawer-body") ?? document.querySelector("main h2");
  near.focus({ preventScroll: true });
}
