/** Converts offsets of a text to `place:line:column`, both from 1, columns in UTF-16 units. The text is scanned once, at the first call. */
export function createTextPlaces(place: string, text: string): (offset: number) => string {
  let starts: number[] | undefined
  return (offset) => {
    starts ??= findLines(text)
    let [low, high] = [0, starts.length - 1]
    while (low < high) {
      const middle = (low + high + 1) >>> 1
      if ((starts[middle] ?? 0) <= offset) low = middle
      else high = middle - 1
    }
    return `${place}:${low + 1}:${offset - (starts[low] ?? 0) + 1}`
  }
}

function findLines(text: string): number[] {
  const starts = [0]
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) starts.push(at + 1)
  return starts
}
