import { program } from '../base/program.ts'

/**
 * The part of JSON Schema that the configuration uses; a test ensures that the configuration uses only these keywords.
 */
export interface SchemaNode {
  readonly type?: string
  readonly properties?: Readonly<Record<string, SchemaNode>>
  readonly required?: readonly string[] | undefined
  readonly additionalProperties?: boolean
  readonly items?: SchemaNode
  readonly anyOf?: readonly SchemaNode[]
  readonly const?: unknown
  readonly minimum?: number
  readonly maximum?: number
  readonly exclusiveMinimum?: number
  readonly minLength?: number
  readonly maxLength?: number
  readonly pattern?: string
  readonly format?: string
  readonly default?: unknown
  readonly description?: string
  readonly examples?: unknown
  /** The accepted values, in an operator's words. */
  readonly accepts?: string
  /** The value is never shown. */
  readonly secret?: boolean
  /** Keys that another of our programs has in this section → why this one has none. */
  readonly absent?: Readonly<Record<string, string>>
}

/** A value that an operator can set, with all its names. */
export interface Key {
  /** Dotted path, `auth.guard.lockMinutes`; also the name of the flag. */
  readonly path: string
  readonly segments: readonly string[]
  /** `EDGEHOSTD_AUTH_GUARD_LOCK_MINUTES` */
  readonly environment: string
  readonly schema: SchemaNode
  readonly secret: boolean
}

const secretName = /password|passphrase|secret|token/i

/** Lists every settable key of a schema, in the order of the schema. */
export function listKeys(schema: SchemaNode, segments: readonly string[] = []): Key[] {
  return Object.entries(schema.properties ?? {}).flatMap(([name, child]) => {
    const inner = [...segments, name]
    return child.properties === undefined ? [toKey(inner, child)] : listKeys(child, inner)
  })
}

/**
 * The names of the key at `segments`, and whether it is secret. A path is not secret: a `tokenFile` may be shown, a
 * `token` may not.
 */
export function toKey(segments: readonly string[], schema: SchemaNode): Key {
  const name = segments.at(-1) ?? ''
  const holdsText = /^(string|array)$/.test(schema.type ?? '') && !/(File|Directory|Program)$/.test(name)
  return {
    path: segments.join('.'),
    segments,
    environment: `${program.environment}${segments.map(toUpperSnake).join('_')}`,
    schema,
    secret: schema.secret === true || (holdsText && secretName.test(name)),
  }
}

/**
 * Why this program does not have a key that another of our programs has.
 * @param name a dotted path, or the name of a variable of the environment
 */
export function whyAbsent(
  name: string,
  schema: SchemaNode,
  segments: readonly string[] = [],
): string | undefined {
  const own = Object.entries(schema.absent ?? {}).find(([last]) => {
    const { path, environment } = toKey([...segments, last], {})
    return `${name}.`.startsWith(`${path}.`) || `${name}_`.startsWith(`${environment}_`)
  })
  if (own) return own[1]
  for (const [inner, child] of Object.entries(schema.properties ?? {})) {
    const reason = whyAbsent(name, child, [...segments, inner])
    if (reason !== undefined) return reason
  }
  return undefined
}

/** `lockMinutes` → `LOCK_MINUTES` */
function toUpperSnake(name: string): string {
  return name.replace(/(?<=[a-z0-9])(?=[A-Z])/g, '_').toUpperCase()
}
