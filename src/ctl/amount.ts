const units = ['bytes', 'kB', 'MB', 'GB', 'TB']

/** A size for people, in decimal units: `1.2 GB`. */
export function amount(bytes: number): string {
  let value = bytes
  let unit = 0
  for (; value >= 999.5 && unit < units.length - 1; unit += 1) value /= 1_000
  return `${unit === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${units[unit] ?? ''}`
}
