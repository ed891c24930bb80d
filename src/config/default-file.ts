import { program } from '../base/program.ts'
import { describeAccepted } from './check-value.ts'
import type { SchemaNode } from './key.ts'
import { writeSetting } from './write-setting.ts'

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
