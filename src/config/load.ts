import { isUtf8 } from 'node:buffer'
import { readdirSync } from 'node:fs'
import { getSystemErrorMap } from 'node:util'
import { FileRefused, readRegularFileSync, textFileBytes } from '../system/regular-file.ts'
import { program } from '../base/program.ts'
import { dirname, join } from 'node:path'
import { withoutEndDots } from '../base/end-slashes.ts'
import { nearestName } from '../base/nearest-name.ts'
import { escapeInvisible, printable } from '../base/printable.ts'
import type { Finding } from '../root/room.ts'
import { checkValue } from './check-value.ts'
import type { CommandLine } from './command-line.ts'
import { listKeys, whyAbsent, type Key, type SchemaNode } from './key.ts'
import { ConfigInvalid, type Problem } from './problem.ts'
import { parseText, type Setting } from './setting.ts'

/** Why a file could not be read, as the end of a sentence that starts with the file name. */
export interface Unreadable {
  readonly missing: boolean
  readonly reason: string
  /** The line in the file, if known. */
  readonly line?: number
}

/** Reads a configuration file as text: at most 1 MiB of UTF-8; a byte order mark is dropped. */
export function readConfigFile(file: string): { readonly text: string } | Unreadable {
  try {
    const { bytes } = readRegularFileSync(file, textFileBytes)
    if (!isUtf8(bytes)) return { missing: false, reason: 'is not UTF-8 text', line: findForeignLine(bytes) }
    return { text: new TextDecoder().decode(bytes) }
  } catch (error) {
    return describeFailure(error)
  }
}

/**
 * Lists the drop-ins of a directory, weakest first: names ending in `.yaml`, in byte order. Hidden names are skipped,
 * because editors use them for locks and swap files.
 */
export function listDropIns(directory: string): { readonly names: string[] } | Unreadable {
  try {
    const names = readdirSync(directory).filter((name) => name.endsWith('.yaml') && !name.startsWith('.'))
    return { names: sortByBytes(names) }
  } catch (error) {
    return describeFailure(error)
  }
}

/** Names in byte order, as drop-ins count. */
export const sortByBytes = (names: readonly string[]): string[] =>
  names.toSorted((one, other) => Buffer.compare(Buffer.from(one), Buffer.from(other)))

/** A newline is never part of a longer UTF-8 sequence, so each line can be checked alone. */
function findForeignLine(bytes: Buffer): number {
  let line = 1
  let start = 0
  for (let end = bytes.indexOf(10); end !== -1 && isUtf8(bytes.subarray(start, end)); line++) {
    start = end + 1
    end = bytes.indexOf(10, start)
  }
  return line
}

function describeFailure(error: unknown): Unreadable {
  if (error instanceof FileRefused) return { missing: false, reason: error.reason }
  const { errno, code } = error as NodeJS.ErrnoException
  if (errno === undefined) throw error
  const words = getSystemErrorMap().get(errno)?.[1] ?? String(code)
  return {
    missing: code === 'ENOENT',
    reason: code === 'ENOENT' ? 'does not exist' : `cannot be read: ${words}`,
  }
}

/** The effective configuration and the source of each value. */
export interface Loaded<Config = object> {
  /** Complete and deeply frozen. */
  readonly config: Config
  /** Dotted path → `default`, `file:line`, `environment NAME` or `flag --name`; unset optional keys are absent. */
  readonly sources: ReadonlyMap<string, string>
}

export interface LoadConfigOptions {
  /** Schema of the whole configuration; every key has a default or is optional. */
  readonly schema: SchemaNode
  /** Keys that are only valid together. */
  readonly pairs: readonly (readonly [string, string])[]
  readonly commandLine: Pick<CommandLine, 'configFile' | 'settings' | 'mentioned' | 'problems'>
  readonly environment: Readonly<Record<string, string | undefined>>
  /** Read when neither `--config` nor `EDGEHOSTD_CONFIG` names a file; may be missing. */
  readonly defaultFile?: string
  /** A planned drop-in: its text counts instead of the file on the disk; undefined for one that is going to be removed. */
  readonly planned?: { readonly file: string; readonly text: string | undefined }
  /** Checks what the schema cannot express: gets the effective value of each key by its dotted path. */
  readonly inspect?: (value: (path: string) => unknown) => Promise<readonly Finding[]>
}

/** The only variable that is not a setting: the path of the configuration file. */
const fileVariable = `${program.environment}CONFIG`

/** The schema and options that every layer is read with. */
interface Layers {
  readonly schema: SchemaNode
  readonly keys: readonly Key[]
}

/** The results of the layers so far. Later settings override earlier ones. */
interface Collected {
  readonly settings: Setting[]
  readonly mentioned: Map<string, string>
  readonly problems: Problem[]
  understood: boolean
}

/**
 * Merges the layers, weakest first: defaults, the file, drop-ins (`config.d/*.yaml` next to the file, in byte order of
 * their names), environment, flags. Sections merge, lists and single values replace.
 * @throws ConfigInvalid with every problem of every layer, also of values that a stronger layer overrides
 */
export async function loadConfig(options: LoadConfigOptions): Promise<Loaded> {
  const { schema, commandLine, environment, defaultFile = `/etc/${program.folder}/config.yaml` } = options
  const layers = { schema, keys: listKeys(schema) }
  const collected: Collected = { settings: [], mentioned: new Map(), problems: [], understood: true }

  const named = commandLine.configFile ?? (environment[fileVariable] || undefined)
  const file = named ?? defaultFile
  await addFile(collected, layers, file, named === undefined)
  await addDropIns(collected, layers, join(dirname(file), 'config.d'), options.planned)
  addEnvironment(collected, layers, environment)
  collected.settings.push(...commandLine.settings)
  collected.problems.push(...commandLine.problems)
  for (const [path, place] of commandLine.mentioned) collected.mentioned.set(path, place)
  if (collected.understood) collected.problems.push(...checkPairs(options.pairs, collected.mentioned))

  const effective = new Map(collected.settings.map((setting) => [setting.key.path, plain(setting)]))
  const inspected = await options.inspect?.((path) => effective.get(path)?.value)
  for (const { path, ...found } of inspected ?? [])
    collected.problems.push({ place: effective.get(path)?.source ?? path, ...found })
  if (collected.problems.length > 0) throw new ConfigInvalid(collected.problems)
  const sources = new Map<string, string>()
  return { config: complete(schema, '', effective, sources), sources }
}

/** One folder has one path, for those who rename or compare it. */
const plain = (setting: Setting): Setting =>
  /directory$/i.test(setting.key.path) && typeof setting.value === 'string'
    ? { ...setting, value: withoutEndDots(setting.value) }
    : setting

async function addFile(
  collected: Collected,
  layers: Layers,
  file: string,
  mayBeMissing: boolean,
  planned?: string,
) {
  const place = escapeInvisible(file)
  const read = planned === undefined ? readConfigFile(file) : { text: planned }
  if ('reason' in read) {
    if (read.missing && mayBeMissing) return
    collected.understood = false
    const line = read.line !== undefined ? `:${read.line}:1` : ''
    collected.problems.push({ place: place + line, message: read.reason })
    return
  }
  if (isBlank(read.text)) return
  // Loaded only for a file with settings: the shipped file is all comments, and loading the library takes longer than
  // everything else here.
  const { parseYaml } = await import('./parse-yaml.ts')
  const parsed = parseYaml(place, read.text, layers.schema, layers.keys)
  collected.settings.push(...parsed.settings)
  collected.problems.push(...parsed.problems)
  for (const [path, place] of parsed.mentioned) collected.mentioned.set(path, place)
  collected.understood &&= parsed.understood
}

/** Whether a text has only blank lines and comments. */
function isBlank(text: string): boolean {
  return text.split('\n').every((line) => /^[ \t\r]*(#|$)/.test(line))
}

async function addDropIns(
  collected: Collected,
  layers: Layers,
  directory: string,
  planned: LoadConfigOptions['planned'],
) {
  const found = listDropIns(directory)
  if (!('names' in found) && !found.missing) {
    collected.understood = false
    collected.problems.push({ place: escapeInvisible(directory), message: found.reason })
  }
  const present = 'names' in found ? found.names.map((name) => join(directory, name)) : []
  const files = planned ? withPlanned(present, planned) : present
  for (const file of files)
    await addFile(collected, layers, file, false, file === planned?.file ? planned.text : undefined)
}

function withPlanned(
  present: readonly string[],
  { file, text }: NonNullable<LoadConfigOptions['planned']>,
): string[] {
  const others = present.filter((each) => each !== file)
  return text === undefined ? others : sortByBytes([...others, file])
}

function addEnvironment(
  collected: Collected,
  { schema, keys }: Layers,
  environment: LoadConfigOptions['environment'],
) {
  const byName = new Map(keys.map((key) => [key.environment, key]))
  for (const name of Object.keys(environment).sort()) {
    const text = environment[name]
    if (!name.startsWith(program.environment) || text === undefined) continue
    const source = `environment ${printable(name)}`
    const key = byName.get(name)
    if (key !== undefined) {
      collected.mentioned.set(key.path, source)
      const value = parseText(key.schema, text)
      const messages = checkValue(key, value)
      collected.problems.push(...messages.map((message) => ({ place: source, message })))
      if (messages.length === 0) collected.settings.push({ key, value, source })
    } else if (name === fileVariable) {
      if (text === '')
        collected.problems.push({ place: source, message: 'is empty; it must be the path of a file' })
    } else {
      const near = nearestName(name, [fileVariable, ...byName.keys()])
      const suggestion = near === undefined ? '' : `; did you mean ${near}?`
      const reason = whyAbsent(name, schema)
      const more = reason === undefined ? suggestion : `; ${reason}`
      collected.problems.push({ place: source, message: `unknown variable${more}` })
    }
  }
}

/** Checks keys that are only valid together. */
function checkPairs(pairs: LoadConfigOptions['pairs'], mentioned: ReadonlyMap<string, string>): Problem[] {
  return pairs
    .flatMap(([one, other]) => [[one, other] as const, [other, one] as const])
    .flatMap(([given, partner]) => {
      const place = mentioned.get(given)
      if (place === undefined || mentioned.has(partner)) return []
      return [{ place, message: `${given} also needs ${partner}` }]
    })
}

/** Builds the section at `prefix` from settings and defaults, and records the source of each value. */
function complete(
  section: SchemaNode,
  prefix: string,
  effective: ReadonlyMap<string, Setting>,
  sources: Map<string, string>,
): object {
  const entries = Object.entries(section.properties ?? {}).flatMap(([name, schema]): [string, unknown][] => {
    const path = prefix + name
    if (schema.properties) return [[name, complete(schema, `${path}.`, effective, sources)]]
    const setting = effective.get(path)
    const value = setting === undefined ? structuredClone(schema.default) : setting.value
    if (value === undefined) return []
    sources.set(path, setting?.source ?? 'default')
    return [[name, Array.isArray(value) ? Object.freeze(value) : value]]
  })
  return Object.freeze(Object.fromEntries(entries))
}
