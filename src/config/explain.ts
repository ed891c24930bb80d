import { escapeInvisible } from '../base/printable.ts'
import { masked } from '../base/mask.ts'
import { toKey, type SchemaNode, listKeys } from './key.ts'
import { program } from '../base/program.ts'
import { describeAccepted } from './check-value.ts'

const reserved = /^(true|false|null|yes|no|on|off|y|n)$/i

/**
 * Writes a value of the configuration as YAML on one line. Text is unquoted only where every YAML version reads it as
 * text; otherwise it is quoted, with control and invisible characters escaped.
 */
export function writeSetting(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(writeSetting).join(', ')}]`
  if (typeof value !== 'string') return JSON.stringify(value)
  if (/^[A-Za-z/][A-Za-z0-9._/-]*$/.test(value) && !reserved.test(value)) return value
  return escapeInvisible(JSON.stringify(value))
}

/** The part of a `LoadedConfig` that `explainConfig` reads. */
export interface Explainable {
  readonly config: object
  readonly sources: ReadonlyMap<string, string>
}

/**
 * The effective configuration as YAML; a comment on each value names its source. Loading the text gives the same
 * configuration: keys that are not set, and secrets, are comments.
 */
export function explainConfig({ config, sources }: Explainable, schema: SchemaNode): string {
  const lines: string[] = []
  const explain = (section: SchemaNode, values: object, segments: readonly string[]) => {
    const indent = '  '.repeat(segments.length)
    for (const [name, child] of Object.entries(section.properties ?? {})) {
      const value: unknown = (values as Record<string, unknown>)[name]
      const key = toKey([...segments, name], child)
      if (child.properties) {
        lines.push(`${indent}${name}:`)
        explain(child, value as object, key.segments)
      } else if (value === undefined) lines.push(`${indent}# ${name}: not set`)
      else {
        const source = sources.get(key.path) ?? 'default'
        const shown = key.secret ? `# ${name}: ${masked}` : `${name}: ${writeSetting(value)}`
        lines.push(`${indent}${shown} # ${source}`)
      }
    }
  }
  explain(schema, config, [])
  return `${lines.join('\n')}\n`
}

/** The text of `--help`. */
export function helpText(schema: SchemaNode): string {
  const settings = listKeys(schema).map(({ path, schema }) => {
    const preset = schema.default === undefined ? '' : ` [${toFlagText(schema.default)}]`
    return `  --${path}=…${preset}\n        ${schema.description ?? ''}\n`
  })
  return `${helpIntroduction}\n${settings.join('')}`
}

function toFlagText(value: unknown): string {
  return Array.isArray(value) ? value.join(',') : String(value)
}

const helpIntroduction = `Usage: ${program.daemon} [options] [--section.key=value ...]

${program.purpose}

Options:
  --config PATH     Read this file in place of /etc/${program.folder}/config.yaml (also: ${program.environment}CONFIG).
                    Drop-ins are read from config.d/*.yaml beside it.
  --check-config    Check the configuration and exit: 0 when it is good, 78 when it is not.
  --print-config    Print the effective configuration, each value with its source, and exit.
  --end-sessions    Remove the secret that all tokens depend on, so that all users have to log in again, and exit.
                    For a state folder that was restored. A daemon that runs has to be restarted.
  --prime-cache     Compile the program into CACHE_DIRECTORY for faster starts, and exit. Must come first.
  --version         Print the version and exit.
  --help            Print this text and exit.

Settings, with their [defaults]. Each is a key of the file, a flag, and a variable of the environment:
api.tls.keyFile, --api.tls.keyFile=/path, ${program.environment}API_TLS_KEY_FILE=/path. Lists are separated by commas.
Flags win over the environment, the environment over drop-ins, drop-ins over the file.
`

const width = 108

/**
 * The configuration file that the package ships: every key with its default, all commented out. Below the introduction
 * the text is YAML, including its comments, with an additional `#` at the start of each line.
 */
export function defaultConfigFile(schema: SchemaNode): string {
  const lines = describeSection(schema, 0).map((line) => (line === '' ? '' : `#${line}`))
  return `${introduction}${lines.join('\n')}\n`
}

function describeSection(section: SchemaNode, depth: number): string[] {
  const indent = '  '.repeat(depth)
  return Object.entries(section.properties ?? {}).flatMap(([name, schema]) => {
    const gap = depth === 0 ? [''] : []
    if (schema.properties) return [...gap, `${indent}${name}:`, ...describeSection(schema, depth + 1)]
    const [example] = (schema.examples ?? []) as unknown[]
    const unset = schema.default === undefined ? ' Not set by default.' : ''
    const about = `${schema.description ?? ''} Takes ${describeAccepted(schema)}.${unset}`
    const value = writeSetting(schema.default ?? example)
    return [...gap, ...wrap(about, `${indent}# `), `${indent}${name}: ${value}`]
  })
}

function wrap(text: string, prefix: string): string[] {
  const lines: string[] = []
  for (const word of text.split(' ')) {
    const last = lines.at(-1)
    if (last === undefined || last.length + word.length >= width) lines.push(prefix + word)
    else lines[lines.length - 1] = `${last} ${word}`
  }
  return lines
}

const introduction = `# Configuration of ${program.daemon}, YAML 1.2. See ${program.daemon}(8).
#
# This file lists every key with its default. To change one, remove the # from its line and from the lines of
# its sections, or write the key into a file of your own in config.d, which upgrades never touch:
#
#     # /etc/${program.folder}/config.d/10-site.yaml
#     log:
#       level: debug
#
# The files config.d/*.yaml override this file, in the order of their names. The environment
# (${program.environment}LOG_LEVEL=debug) overrides the files, and flags (--log.level=debug) override the environment.
# Sections merge, lists are replaced.
# ${program.daemon} --check-config lists every problem; ${program.daemon} --print-config shows each value and its source.
# A change takes effect with: systemctl restart ${program.daemon}
`
