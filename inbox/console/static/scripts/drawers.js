// A drawer that the address opens: the way back closes what the way there has opened.

// `open(id, closed)` opens one. `forget()` is called when it was closed by hand, so that the address no longer asks for it.
export function addressedDrawer(open, forget) {
  let current = null;
  return (id) => {
    const before = current;
    current = null;
    before?.dialog.close();
    if (!id) return;
    const opened = open(id, () => {
      if (current !== opened) return;
      current = null;
      forget();
    });
    current = opened;
  };
}
