const stringBytes = 16
const objectBytes = 32
const propertyBytes = 32

/**
 * Estimated bytes of memory of a value of JSON, rather too many: properties count as entries of a map, with their names. Twice as many
 * where texts have letters beyond Latin-1.
 */
export function heapBytes(value: unknown): number {
  if (typeof value === 'string') return stringBytes + value.length
  if (typeof value !== 'object' || value === null) return 8
  let bytes = objectBytes
  if (Array.isArray(value)) for (const each of value) bytes += 8 + heapBytes(each)
  else
    for (const [name, each] of Object.entries(value)) bytes += propertyBytes + name.length + heapBytes(each)
  return bytes
}
