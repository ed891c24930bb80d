/** The part of JSON Schema that the configuration uses; a test holds the whole configuration to these keywords. */
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
  /** What is let through, in an operator's words. */
  readonly accepts?: string
  /** The value is never shown. */
  readonly secret?: boolean
}

/** One value an operator can set, under all its names. */
export interface Key {
  /** Dotted, `auth.guard.lockMinutes`; also the flag's name. */
  readonly path: string
  readonly segments: readonly string[]
  /** `EDGEHOSTD_AUTH_GUARD_LOCK_MINUTES` */
  readonly environment: string
  readonly schema: SchemaNode
  readonly secret: boolean
}

const secretName = /password|passphrase|secret|token/i

/** Every settable key of a schema, in its order. */
export function listKeys(schema: SchemaNode, segments: readonly string[] = []): Key[] {
  return Object.entries(schema.properties ?? {}).flatMap(([name, child]) => {
    const inner = [...segments, name]
    return child.properties === undefined ? [toKey(inner, child)] : listKeys(child, inner)
  })
}

/** Names and secrecy of the key at `segments`. Paths are no secrets: a `tokenFile` may be shown, a `token` not. */
export function toKey(segments: readonly string[], schema: SchemaNode): Key {
  const name = segments.at(-1) ?? ''
  const holdsText = /^(string|array)$/.test(schema.type ?? '') && !/(File|Directory|Program)$/.test(name)
  return {
    path: segments.join('.'),
    segments,
    environment: `EDGEHOSTD_${segments.map(toUpperSnake).join('_')}`,
    schema,
    secret: schema.secret === true || (holdsText && secretName.test(name)),
  }
}

/** `lockMinutes` → `LOCK_MINUTES` */
function toUpperSnake(name: string): string {
  return name.replace(/(?<=[a-z0-9])(?=[A-Z])/g, '_').toUpperCase()
}
