import { Type } from 'typebox'

/**
 * Treatment of a field of the published API that is not honoured. Beside the schema of the field, in its options:
 * `Type.String(refused('…'))`. A field with neither is honoured. `test/unit/api/published-fields.test.ts` holds both APIs to the published lists.
 */
export type FieldStance = { readonly description: string } & (
  { readonly 'x-ignored': string } | { readonly 'x-refused': Refusal }
)

export interface Refusal {
  /** Why, and what to do instead; ends a sentence. */
  readonly why: string
  /** Accepted values beside the empty ones, which change nothing, as the published default: clients send them. */
  readonly except: readonly unknown[]
}

/** A field that may have any value, since none has an effect. @param why it has none */
export const ignored = (why: string) => ({ 'x-ignored': why, description: `Ignored: ${why}.` })

/** A field whose value would need an effect that this host or platform lacks: empty, absent or one of `except`. */
export const refused = (why: string, ...except: readonly unknown[]) => ({
  'x-refused': { why, except } satisfies Refusal,
  description: `Has to be ${acceptedOf(except)}: ${why}.`,
})

/** The options of a field: its meaning, or its treatment. */
export const optionsOf = (about: string | FieldStance) =>
  typeof about === 'string' ? { description: about } : about
/** A text that may be left out. */
export const maybe = (about: string | FieldStance) => Type.Optional(Type.String(optionsOf(about)))
/** A boolean that may be left out. */
export const flag = (about: string | FieldStance) => Type.Optional(Type.Boolean(optionsOf(about)))

/** For a field of replies that comes back with a request. */
export const setByPlatform = ignored('the platform sets it')

const acceptedOf = (except: readonly unknown[]) => [...except.map(String), 'empty or absent'].join(', ')

/** Empty text, objects and lists mean: not set, and so do false, 0 and null. */
export const isUnset = (value: unknown): boolean =>
  value === undefined ||
  value === '' ||
  value === false ||
  value === 0 ||
  (typeof value === 'object' && Object.values(value ?? {}).every(isUnset))

/** @returns the path below a refused field to the value set in it, and why it is refused; undefined for an accepted value. Pure. */
export function refusalOf(
  { why, except }: Refusal,
  value: unknown,
): { readonly path: readonly string[]; readonly message: string } | undefined {
  if (isUnset(value) || except.includes(value)) return undefined
  const path: string[] = []
  let at = value
  while (typeof at === 'object' && at !== null) {
    const [name, inner] = Object.entries(at).find(([, each]) => !isUnset(each)) ?? []
    if (name === undefined) break
    path.push(name)
    at = inner
  }
  const accepted = path.length > 0 ? 'empty or absent' : acceptedOf(except)
  return { path, message: `has to be ${accepted}: ${why}` }
}
