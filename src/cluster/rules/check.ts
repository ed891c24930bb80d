import type { Definition, Problem } from '../definition.ts'

/** Every problem of the content of a definition. */
export function checkDefinition(definition: Definition): Problem[] {
  void definition
  return []
}
