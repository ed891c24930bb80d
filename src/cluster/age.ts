const units = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1_000],
] as const

/** An age in its two largest units, as kubectl shows it: `3d4h`, `5m`, `12s`. @param ms a clock that was set may make it negative */
export function ageOf(ms: number): string {
  let left = Math.max(0, ms)
  const parts = units.map(([unit, length]) => {
    const count = Math.floor(left / length)
    left -= count * length
    return { unit, count }
  })
  const first = parts.findIndex(({ count }) => count > 0)
  if (first < 0) return '0s'
  return parts
    .slice(first, first + 2)
    .filter(({ count }) => count > 0)
    .map(({ unit, count }) => `${count}${unit}`)
    .join('')
}
