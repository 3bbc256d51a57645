/** Returns the numbers of the points that no other point beats in both values, by their first value. */
export function front(points: { x: number; y: number }[]): number[] {
  const order = points.map((_, number) => number);
  order.sort((a, b) => {
    const [one, other] = [points[a], points[b]];
    return one && other ? one.x - other.x || one.y - other.y : 0;
  });
  const found: number[] = [];
  let least = Infinity;
  for (const number of order) {
    const point = points[number];
    if (point && point.y < least) {
      least = point.y;
      found.push(number);
    }
  }
  return found;
}
