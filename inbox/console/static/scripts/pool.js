// Many calls, a few at a time.

// The first that fails is the last.
export async function each(items, act, atOnce = 4) {
  const results = new Array(items.length);
  let next = 0;
  const work = async () => {
    while (next < items.length) {
      const place = next++;
      try {
        results[place] = await act(items[place]);
      } catch (error) {
        next = items.length;
        throw error;
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(atOnce, items.length) }, work));
  return results;
}
