import { isRecord } from '../../../base/json.ts'
import { readPlain } from '../../../definition/rules/plain-values.ts'
import { mappingAt, textOf, valueAt, type Mapping } from './plain.ts'

/**
 * What `stages` of the values of an infrastructure pack would make on the host: absolute paths of files and folders, and sysctls as
 * `name=value`; sorted, each once. `stages` is the cloud configuration of the platform's hosts: stage → steps.
 */
export function stagesIn(values: Mapping): string[] {
  const found = new Set<string>()
  for (const stages of [
    values.stages,
    valueAt(values, 'cluster', 'stages'),
    valueAt(values, 'pack', 'stages'),
  ])
    for (const steps of Object.values(asMapping(stages))) {
      if (!Array.isArray(steps)) continue
      for (const step of steps as unknown[]) {
        for (const path of [...pathsIn(valueAt(step, 'files')), ...pathsIn(valueAt(step, 'directories'))])
          found.add(path)
        for (const [name, value] of Object.entries(mappingAt(step, 'sysctl')))
          found.add(`${name}=${textOf(value) ?? ''}`)
      }
    }
  return [...found].sort()
}

/** A mapping, or the text of one. */
function asMapping(value: unknown): Mapping {
  const plain = typeof value === 'string' ? readPlain(value).documents[0] : value
  return isRecord(plain) ? plain : {}
}

const pathsIn = (files: unknown): string[] =>
  Array.isArray(files) ? (files as unknown[]).flatMap((file) => textOf(valueAt(file, 'path')) ?? []) : []
