import { parseArgs, type ParseArgsConfig } from 'node:util'
import { nearestName } from '../base/nearest-name.ts'
import { printable } from '../base/printable.ts'
import { checkValue } from './check-value.ts'
import { listKeys, whyAbsent, type SchemaNode } from './key.ts'
import type { Problem } from './problem.ts'
import { parseText, type Setting } from './setting.ts'

/** The actions of the daemon, weakest first: if several are given, the strongest is done. */
const actions = ['run', 'end-sessions', 'check-config', 'print-config', 'version', 'help'] as const
export type Action = (typeof actions)[number]

/** The parsed command line of the daemon. Its problems are reported together with those of the other layers. */
export interface CommandLine {
  readonly action: Action
  /** From `--config`. */
  readonly configFile: string | undefined
  readonly settings: readonly Setting[]
  /** Keys that are given, including those with a refused value → their place. */
  readonly mentioned: ReadonlyMap<string, string>
  readonly problems: readonly Problem[]
}

/**
 * Parses the arguments: `--config PATH`, the actions, and every key of the configuration as a dotted flag,
 * `--api.port=5081`. Of a flag given twice, each value is checked and the last one is used.
 * @param argv without program and script
 * @param schema of the whole configuration
 */
export function parseCommandLine(argv: readonly string[], schema: SchemaNode): CommandLine {
  const keys = new Map(listKeys(schema).map((key) => [key.path, key]))
  const problems: Problem[] = []
  const settings: Setting[] = []
  const mentioned = new Map<string, string>()
  const asked = new Set<string>()
  let configFile: string | undefined

  for (const token of parseTokens(argv, keys)) {
    if (token.kind === 'positional') {
      const message = `unexpected argument; settings are given as --section.key=value`
      problems.push({ place: `argument ${printable(token.value)}`, message })
    }
    if (token.kind !== 'option') continue
    const { name, value, inlineValue } = token
    const place = `flag ${printable(token.rawName)}`
    const refuse = (message: string) => problems.push({ place, message })
    const key = keys.get(name)
    const isAction = (actions as readonly string[]).includes(name) && name !== 'run'
    if (isAction && value !== undefined) refuse('takes no value')
    else if (isAction) asked.add(name)
    else if (key === undefined && name !== 'config') refuse(describeUnknown(name, [...keys.keys()], schema))
    else if (value === undefined && key?.schema.type !== 'boolean') refuse('needs a value')
    else if (value?.startsWith('-') && !inlineValue)
      refuse(`needs a value; write ${token.rawName}=${printable(value)} if this is the value`)
    else if (key === undefined && value === '') refuse('needs a value')
    else if (key === undefined) configFile = value
    else {
      mentioned.set(key.path, place)
      const typed = parseText(key.schema, value ?? 'true')
      const messages = checkValue(key, typed)
      messages.forEach(refuse)
      if (messages.length === 0) settings.push({ key, value: typed, source: place })
    }
  }
  const action = actions.findLast((name) => asked.has(name)) ?? 'run'
  return { action, configFile, settings, mentioned, problems }
}

function parseTokens(argv: readonly string[], keys: ReadonlyMap<string, { schema: { type?: string } }>) {
  const options: NonNullable<ParseArgsConfig['options']> = { config: { type: 'string' } }
  for (const [path, { schema }] of keys)
    options[path] = { type: schema.type === 'boolean' ? 'boolean' : 'string' }
  // Not strict: that throws at the first problem, and all problems are to be reported.
  return parseArgs({ args: [...argv], options, strict: false, allowPositionals: true, tokens: true }).tokens
}

function describeUnknown(name: string, paths: readonly string[], schema: SchemaNode): string {
  const reason = whyAbsent(name, schema)
  if (reason !== undefined) return `unknown flag; ${reason}`
  const near = nearestName(name, ['config', ...actions.slice(1), ...paths])
  return near === undefined ? 'unknown flag; see --help' : `unknown flag; did you mean --${near}?`
}
