import { isDict, isList, kindOf, Refusal, type Value } from './value.ts'

interface Kinds {
  readonly text: string
  readonly integer: bigint
  readonly number: number
  readonly boolean: boolean
  readonly list: readonly Value[]
  readonly any: Value
}
type Kind = keyof Kinds
type ArgumentsOf<T extends readonly Kind[]> = { [K in keyof T]: Kinds[T[K]] }

/** A function of templates. */
export interface TemplateFunction {
  /** The smallest and the largest number of arguments. */
  readonly least: number
  readonly most: number
  /** @throws Refusal */
  readonly call: (values: readonly Value[]) => Value
}

/** A function with arguments of these kinds. Other kinds are refused, as by Go's templates. */
export function define<const T extends readonly Kind[]>(
  takes: T,
  run: (...values: ArgumentsOf<T>) => Value,
): TemplateFunction {
  const call = (values: readonly Value[]): Value => {
    values.forEach((value, index) => checkKind(value, takes[index] ?? 'any'))
    return run(...(values as unknown as ArgumentsOf<T>))
  }
  return { least: takes.length, most: takes.length, call }
}

/** A function with any number of arguments, at least `least`. */
export const defineMany = (least: number, run: (values: readonly Value[]) => Value): TemplateFunction => ({
  ...{ least, most: Infinity, call: run },
})

const names: Record<Kind, string> = {
  ...{ text: 'text', integer: 'an integer', number: 'a number', boolean: 'a boolean', list: 'a list' },
  any: 'a value',
}

function checkKind(value: Value, kind: Kind): void {
  const isRight =
    kind === 'any' ||
    (kind === 'text' && typeof value === 'string') ||
    (kind === 'integer' && typeof value === 'bigint') ||
    (kind === 'number' && (typeof value === 'number' || typeof value === 'bigint')) ||
    (kind === 'boolean' && typeof value === 'boolean') ||
    (kind === 'list' && isList(value) && !isDict(value))
  if (!isRight) throw new Refusal(`takes ${names[kind]}, not ${kindOf(value)}`)
}
