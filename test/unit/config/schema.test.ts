import { expect, test } from 'vitest'
import { checkValue } from '../../../src/config/check-value.ts'
import { defaultConfigFile, configSchema } from '../../../src/edgehostd/declarations.ts'
import { listKeys, type SchemaNode } from '../../../src/config/key.ts'
import { parseYaml } from '../../../src/config/parse-yaml.ts'

const keys = listKeys(configSchema)

function sectionsOf(schema: SchemaNode): SchemaNode[] {
  const inner = Object.values(schema.properties ?? {}).filter((child) => child.properties)
  return [schema, ...inner.flatMap(sectionsOf)]
}

test('the schema uses only keywords that are checked', () => {
  const about = ['default', 'description', 'examples', 'accepts', 'secret']
  const checked: Record<string, string[]> = {
    integer: ['type', 'minimum', 'maximum', 'exclusiveMinimum'],
    number: ['type', 'minimum', 'maximum', 'exclusiveMinimum'],
    boolean: ['type'],
    string: ['type', 'minLength', 'maxLength', 'pattern', 'format'],
    array: ['type', 'items'],
    choice: ['anyOf'],
  }
  const unknown = keys.flatMap(({ path, schema }) =>
    [schema, ...(schema.items ? [schema.items] : [])].flatMap((node) =>
      Object.keys(node)
        .filter((keyword) => ![...about, ...(checked[node.type ?? 'choice'] ?? [])].includes(keyword))
        .map((keyword) => `${path}: ${keyword}`),
    ),
  )
  expect(unknown).toEqual([])
  for (const { schema } of keys) {
    if (schema.format !== undefined) expect(schema.format).toBe('ip')
    for (const choice of schema.anyOf ?? []) expect(choice).toEqual({ type: 'string', const: choice.const })
    if (schema.type === 'array') expect(schema.items?.type).toBe('string')
  }
})

test('every section refuses unknown keys', () => {
  for (const section of sectionsOf(configSchema)) expect(section.additionalProperties).toBe(false)
})

test.each(keys)('$path has a description, and a default or an example that is accepted', (key) => {
  expect(key.schema.description).toMatch(/\.$/)
  const [example] = (key.schema.examples ?? []) as unknown[]
  expect(checkValue(key, key.schema.default ?? example)).toEqual([])
})

test('keys without a default are optional, and the others are not', () => {
  for (const section of sectionsOf(configSchema)) {
    const leaves = Object.entries(section.properties ?? {}).filter(([, child]) => !child.properties)
    const complete = leaves.filter(([, child]) => child.default !== undefined).map(([name]) => name)
    const required = leaves.map(([name]) => name).filter((name) => section.required?.includes(name))
    expect(required).toEqual(complete)
  }
})

test('every key with a pattern or format says in words what it accepts', () => {
  for (const { schema, path } of keys) {
    if (schema.pattern !== undefined || schema.format !== undefined) expect(schema.accepts, path).toBeTruthy()
  }
})

test('no two keys share a variable of the environment', () => {
  expect(new Set(keys.map((key) => key.environment)).size).toBe(keys.length)
  expect(keys.find((key) => key.path === 'auth.guard.lockMinutes')?.environment).toBe(
    'EDGEHOSTD_AUTH_GUARD_LOCK_MINUTES',
  )
})

test.each([
  ['password', 'string', true],
  ['adminToken', 'string', true],
  ['clientSecret', 'string', true],
  ['tokens', 'array', true],
  ['tokenFile', 'string', false],
  ['tokenMinutes', 'integer', false],
  ['level', 'string', false],
])('a key named %s of type %s is secret: %s', (name, type, secret) => {
  expect(listKeys({ properties: { [name]: { type } } })[0]?.secret).toBe(secret)
})

test('a message never repeats the value of a secret key', () => {
  const schema = { properties: { pin: { type: 'string', minLength: 9, secret: true } } }
  expect(checkValue(listKeys(schema)[0]!, 'hunter2')).toEqual([
    'pin is not acceptable; it must be text that is not empty',
  ])
})

test('the shipped configuration, its signs of comment taken away, gives every key its default', () => {
  const body = defaultConfigFile().slice(defaultConfigFile().indexOf('\n#host:'))
  const parsed = parseYaml('x', body.replace(/^#/gm, ''), configSchema, keys)
  expect(parsed.problems).toEqual([])
  expect(parsed.settings.map(({ key, value }) => [key.path, value])).toEqual(
    keys.map(({ path, schema }) => [path, schema.default ?? (schema.examples as unknown[])[0]]),
  )
})
