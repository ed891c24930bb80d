/** What of a JSON schema the inventory uses. */
interface Form {
  readonly type?: string
  readonly properties?: Readonly<Record<string, Form>>
  readonly required?: readonly string[]
  readonly items?: Form
  readonly anyOf?: readonly Form[]
  readonly const?: unknown
}

/**
 * Where a value does not have the form of a schema, such as `/disks/0/name`; undefined where it has. Bounds are not compared.
 * A compiled check would keep 6 MiB in the memory of the daemon, for a few values a day.
 */
export function findMisfit(schema: object, value: unknown, path = ''): string | undefined {
  const form = schema as Form
  if (form.anyOf) return form.anyOf.some((each) => each.const === value) ? undefined : path
  switch (form.type) {
    case 'array': {
      if (!Array.isArray(value)) return path
      return firstOf(value, (each, index) => findMisfit(form.items ?? {}, each, `${path}/${index}`))
    }
    case 'object': {
      if (typeof value !== 'object' || value === null || Array.isArray(value)) return path
      const fields = new Map(Object.entries(value))
      return firstOf(Object.entries(form.properties ?? {}), ([name, each]) =>
        fields.has(name) || form.required?.includes(name)
          ? findMisfit(each, fields.get(name), `${path}/${name}`)
          : undefined,
      )
    }
    case 'integer':
      return Number.isSafeInteger(value) ? undefined : path
    case undefined:
    default:
      return typeof value === form.type ? undefined : path
  }
}

function firstOf<T>(list: readonly T[], find: (item: T, index: number) => string | undefined) {
  for (const [index, item] of list.entries()) {
    const found = find(item, index)
    if (found !== undefined) return found
  }
  return undefined
}
