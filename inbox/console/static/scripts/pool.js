// Many calls, a few at a time.

export async function each(items, act, atOnce = 4) {
  const results = new Array(items.length);
  let next = 0;
  const work = async () => {
    while (next < items.length) {
      const place = next++;
      results[place] = await act(items[place]);
    }
  };
  await Promise.all(Array.from({ length: Math.min(atOnce, items.length) }, work));
  return results;
}
