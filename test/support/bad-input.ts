import type { Schema } from '../../build/openapi.ts'
import type { Random } from './random.ts'

/** Values that have broken programs before; all are invalid where a schema requires something. */
const hostile: readonly unknown[] = [
  null,
  true,
  0,
  -1,
  2 ** 53,
  1e308,
  '',
  ' ',
  '\0',
  'a\0b',
  '\ud800',
  '\udfff\ud800',
  '\u202e\ufeff',
  '😀'.repeat(300),
  'x'.repeat(5_000),
  '../../etc/passwd',
  '%00%2e%2e',
  "' OR 1=1 --",
  '$(reboot)',
  '-rf',
  'a\nb\r\nc: d',
  '__proto__',
  'constructor',
  '[object Object]',
  'metadata.uid=xANDOR',
  'metadata.uid="',
  'metadata.number=1e999ORmetadata.number=',
  'metadata.createTimestamp=1,metadata.createTimestamp=-1',
  'metadata.uid,,..',
  'WzIsM10.c2lnbmF0dXJl',
  [],
  [[]],
  {},
  { toString: 1, length: -1 },
  { constructor: { prototype: { role: 'admin' } } },
]

/** A value that follows a schema, with errors in some places. */
export function badValue(random: Random, schema: Schema, depth = 0): unknown {
  if (random.isChosen(0.2) || depth > 5) return random.pick(hostile)
  if (schema.anyOf) return badValue(random, random.pick(schema.anyOf), depth)
  if (schema.const !== undefined) return schema.const
  if (schema.enum) return random.pick(schema.enum)
  const type: string = [schema.type ?? 'any'].flat()[0] ?? 'any'
  switch (type) {
    case 'object': {
      const entries = Object.entries(schema.properties ?? {}).filter(() => random.isChosen(0.9))
      const object = Object.fromEntries(
        entries.map(([name, each]) => [name, badValue(random, each, depth + 1)]),
      )
      if (random.isChosen(0.3)) object[badText(random)] = random.pick(hostile)
      return object
    }
    case 'array':
      return Array.from({ length: random.below(4) }, () => badValue(random, schema.items ?? {}, depth + 1))
    case 'boolean':
      return random.isChosen(0.5)
    case 'integer':
    case 'number':
      return random.below(100)
    case 'string':
      return random.pick(['alice', 'bob', 'x', badText(random)])
    default:
      return random.pick(hostile)
  }
}

/** Text where only text is possible: a query, a part of a path. */
export function badText(random: Random): string {
  const value = random.pick(hostile)
  if (typeof value === 'string') return value
  return random.isChosen(0.5) ? JSON.stringify(value) : String.fromCharCode(...bytes(random, 20))
}

/** A body of no schema: nearly JSON, or nothing like it. */
export function garbage(random: Random): string | Buffer {
  const deep = 10_000
  return random.pick<() => string | Buffer>([
    () => Buffer.from(bytes(random, 500)),
    () => '['.repeat(deep) + ']'.repeat(deep),
    () => '{"a":'.repeat(deep) + '1' + '}'.repeat(deep),
    () => '['.repeat(deep),
    () => '{"username":"alice","username":5,"username":"bob","password":"x","password":null}',
    () => '{"__proto__":{"role":"admin"},"username":"alice","password":"x"}',
    () => '{"username":"alice","password":"x","constructor":{"prototype":{"role":"admin"}}}',
    () => '{"a":{"\\u005f_proto__":{"x":1}},"username":"alice","password":"x"}',
    () => '{"username":"\\u0000","password":"\\ud800","refreshToken":"\\udc00"}',
    () => '{"username":"\0","password":"x"}',
    () => Buffer.from([0x7b, 0x22, 0xff, 0xfe, 0x22, 0x3a, 0x31, 0x7d]),
    () => '\ufeff{"username":"alice","password":"x"}',
    () => '{"username":1e999,"password":-0}',
    () => '{"username":"alice","password":"x"}{"username":"bob"}',
    () => 'null',
    () => '"text"',
    () => '',
    () => '{',
    () => 'NaN',
    () => `{"username":"${'x'.repeat(70_000)}"}`,
  ])()
}

export const bytes = (random: Random, count: number) => Array.from({ length: count }, () => random.below(256))
