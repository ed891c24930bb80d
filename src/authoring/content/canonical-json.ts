/** JSON with the fields of every object in one order: the same value gives the same bytes. */
export const canonicalJson = (value: unknown): string => JSON.stringify(sortFields(value))

function sortFields(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sortFields)
  if (typeof value !== 'object' || value === null) return value
  const fields = Object.entries(value).sort(([one], [other]) => compareTexts(one, other))
  return Object.fromEntries(fields.map(([name, field]) => [name, sortFields(field)]))
}

/** Order by code units, since the order of a locale would depend on the machine. */
export const compareTexts = (one: string, other: string): number => (one < other ? -1 : Number(one > other))
