import { masked } from '../base/mask.ts'
import { toKey, type SchemaNode } from './key.ts'
import { writeSetting } from './write-setting.ts'

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
