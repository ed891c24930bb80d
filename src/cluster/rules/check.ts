import type { Definition, Problem } from '../definition.ts'

/** Every problem of the content of a definition. */
export const checkDefinition: (definition: Definition) => Problem[] = () => []
