import type { TemplateFunction } from './define.ts'
import { encodingFunctions } from './encodings.ts'
import { listFunctions } from './lists.ts'
import { logicFunctions } from './logic.ts'
import { numberFunctions } from './numbers.ts'
import { textFunctions } from './text.ts'

/**
 * The functions of templates (http://masterminds.github.io/sprig/ and Go's own) that this host supports: those whose result
 * depends only on their arguments. A test compares each with recorded results of helm. Functions that choose between
 * arguments, such as `default`, are in evaluate.ts.
 */
export const templateFunctions: ReadonlyMap<string, TemplateFunction> = new Map(
  [textFunctions, numberFunctions, listFunctions, logicFunctions, encodingFunctions].flatMap((each) =>
    Object.entries(each),
  ),
)
