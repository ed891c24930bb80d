import type { TemplateFunction } from './define.ts'
import { encodingFunctions } from './encodings.ts'
import { listFunctions } from './lists.ts'
import { logicFunctions } from './logic.ts'
import { numberFunctions } from './numbers.ts'
import { textFunctions } from './text.ts'

/**
 * The functions of templates (http://masterminds.github.io/sprig/ and Go's own) that this host knows: those that give the
 * same for the same values, at once. A test holds each against a record of a real helm. Those that choose or skip values,
 * as `default`, stand in evaluate.ts.
 */
export const templateFunctions: ReadonlyMap<string, TemplateFunction> = new Map(
  [textFunctions, numberFunctions, listFunctions, logicFunctions, encodingFunctions].flatMap((each) =>
    Object.entries(each),
  ),
)
